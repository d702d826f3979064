//! Schedules as text that fits into a command line.
//!
//! The bytes are a version, the tags of the tasks that occur, the deviations as small numbers that
//! refer to those tags, and three bytes of a digest; the text is these in base64url without
//! padding. A deviation between few tasks takes two bytes, so that fifteen of them among four tasks
//! fit into 64 characters.

use super::{Deviation, Point, Schedule};
use asx_kernel::digest::Digest;
use std::fmt;

const VERSION: u8 = 1;
/// The versions of tokens whose schedules have [points](Points) everywhere, or where things were
/// used.
const ALL: u8 = 5;
const USED: u8 = 6;
/// What is added to each if there are choices in it of more kinds than [`NARROW`], which take more
/// room.
const WIDE: u8 = 2;
/// So many kinds of choices, as declared, have a number that takes little room.
const NARROW: u64 = 8;

/// Where a poll can be left for others to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Points {
    /// Nowhere.
    #[default]
    None,
    /// Before and after each operation.
    All,
    /// There, if something was used since the last such point: elsewhere nobody can tell.
    Used,
}

impl Points {
    /// So many polls, or the steps they are made of: more, if these are smaller.
    pub(crate) fn times<N: std::ops::Mul<Output = N> + From<u8>>(self, polls: N) -> N {
        match self {
            Points::None => polls,
            Points::All | Points::Used => polls * N::from(4),
        }
    }

    const fn version(self) -> u8 {
        match self {
            Points::None => VERSION,
            Points::All => ALL,
            Points::Used => USED,
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Why a text is no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// The character at this place can't occur.
    Character(usize),
    /// A piece is missing, or there is too much.
    Length,
    /// It was written by another version of this.
    Version(u8),
    /// It was damaged.
    Checksum,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Character(at) => write!(f, "character {} can't be in a schedule", at + 1),
            TokenError::Length => f.write_str("the schedule is incomplete or has too much"),
            TokenError::Version(version) => {
                write!(f, "the schedule has version {version}; this reads version {VERSION}")
            }
            TokenError::Checksum => f.write_str("the schedule is damaged: its checksum is wrong"),
        }
    }
}

impl std::error::Error for TokenError {}

impl Schedule {
    /// The schedule as text.
    ///
    /// ```
    /// use asx::lab::explore::{Deviation, Schedule};
    /// let deviations = vec![Deviation::Task { of: 0xABCDEF, step: 2, task: 0x123456 }];
    /// let schedule = Schedule { deviations };
    /// let token = schedule.token();
    /// assert!(token.len() <= 20);
    /// assert_eq!(Schedule::from_token(&token), Ok(schedule));
    /// ```
    pub fn token(&self) -> String {
        self.token_of(Points::None)
    }

    /// The schedule as text, if polls can be left at these points.
    pub(crate) fn token_of(&self, left_at: Points) -> String {
        let takes_room = |deviation: &Deviation| match deviation {
            Deviation::Pick { point, .. } => *point as u64 >= NARROW,
            Deviation::Task { .. } => false,
        };
        let is_wide = self.deviations.iter().any(takes_room);
        let version = left_at.version();
        let mut bytes = vec![if is_wide { version + WIDE } else { version }];
        let points = if is_wide { 16 } else { NARROW };
        let mut tags: Vec<u32> = Vec::new();
        let mut body = Vec::new();
        let mut index = |tag: u32| match tags.iter().position(|known| *known == tag) {
            Some(at) => at as u64,
            None => {
                tags.push(tag);
                tags.len() as u64 - 1
            }
        };
        for deviation in &self.deviations {
            match *deviation {
                Deviation::Task { of, step, task } => {
                    let of = index(of);
                    let task = index(task);
                    put(&mut body, pair(of, task) * 2);
                    put(&mut body, u64::from(step));
                }
                Deviation::Pick { of, step, nth, point, picked } => {
                    put(&mut body, (index(of) * points + point as u64) * 2 + 1);
                    [step, nth, picked].into_iter().for_each(|it| put(&mut body, u64::from(it)));
                }
            }
        }
        put(&mut bytes, tags.len() as u64);
        tags.iter().for_each(|tag| bytes.extend(&tag.to_be_bytes()[1..]));
        bytes.extend(body);
        let sum = checksum(&bytes);
        bytes.extend(sum);
        text_of(&bytes)
    }

    /// Reads a schedule from its text.
    pub fn from_token(token: &str) -> Result<Schedule, TokenError> {
        match Schedule::with_points(token)? {
            (schedule, Points::None) => Ok(schedule),
            (_, left_at) => Err(TokenError::Version(left_at.version())),
        }
    }

    /// Reads a schedule, and where its polls can be left.
    pub(crate) fn with_points(token: &str) -> Result<(Schedule, Points), TokenError> {
        let bytes = bytes_of(token.as_bytes())?;
        let (body, sum) = bytes.split_last_chunk::<3>().ok_or(TokenError::Length)?;
        let version = body.first().copied().ok_or(TokenError::Length)?;
        let all = [Points::None, Points::All, Points::Used];
        let known = all.iter().flat_map(|it| {
            let narrow = (it.version(), *it, NARROW);
            [narrow, (it.version() + WIDE, *it, 16)]
        });
        let (_, left_at, points) =
            known.into_iter().find(|it| it.0 == version).ok_or(TokenError::Version(version))?;
        if checksum(body) != *sum {
            return Err(TokenError::Checksum);
        }
        let mut rest = &body[1..];
        let count = take(&mut rest)?;
        let mut tags = Vec::new();
        for _ in 0..count {
            let (tag, others) = rest.split_first_chunk::<3>().ok_or(TokenError::Length)?;
            tags.push(u32::from_be_bytes([0, tag[0], tag[1], tag[2]]));
            rest = others;
        }
        let tag = |at: u64| tags.get(at as usize).copied().ok_or(TokenError::Length);
        let mut deviations = Vec::new();
        while !rest.is_empty() {
            let code = take(&mut rest)?;
            deviations.push(if code % 2 == 0 {
                let (of, task) = unpair(code / 2);
                Deviation::Task { of: tag(of)?, step: number(&mut rest)?, task: tag(task)? }
            } else {
                let point = Point::ALL.get((code / 2 % points) as usize);
                let point = point.copied().ok_or(TokenError::Length)?;
                let of = tag(code / (2 * points))?;
                let step = number(&mut rest)?;
                let nth = number(&mut rest)?;
                Deviation::Pick { of, step, nth, point, picked: number(&mut rest)? }
            });
        }
        Ok((Schedule { deviations }, left_at))
    }
}

/// Two small numbers as one: small whatever the greater of them is.
fn pair(a: u64, b: u64) -> u64 {
    if a < b { b * b + a } else { a * a + a + b }
}

fn unpair(code: u64) -> (u64, u64) {
    let root = code.isqrt();
    let rest = code - root * root;
    if rest < root { (rest, root) } else { (root, rest - root) }
}

/// Seven bits to a byte, the lowest first; the top bit says that there is more.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64, TokenError> {
    let mut number = 0;
    for shift in (0..56).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(TokenError::Length)?;
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        if *byte < 128 {
            return Ok(number);
        }
    }
    Err(TokenError::Length)
}

fn number(bytes: &mut &[u8]) -> Result<u32, TokenError> {
    take(bytes)?.try_into().map_err(|_| TokenError::Length)
}

fn checksum(bytes: &[u8]) -> [u8; 3] {
    let [a, b, c, ..] = Digest::new().bytes(bytes).value().to_le_bytes();
    [a, b, c]
}

fn text_of(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for place in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text
}

fn bytes_of(text: &[u8]) -> Result<Vec<u8>, TokenError> {
    let mut bytes = Vec::new();
    for (number, chunk) in text.chunks(4).enumerate() {
        let mut word = 0;
        for (place, character) in chunk.iter().enumerate() {
            let value = ALPHABET.iter().position(|known| known == character);
            let value = value.ok_or(TokenError::Character(number * 4 + place))?;
            word |= (value as u32) << (18 - 6 * place);
        }
        let word = word.to_be_bytes();
        let (whole, rest) = word[1..].split_at(chunk.len() - 1);
        if chunk.len() == 1 || rest.iter().any(|byte| *byte != 0) {
            return Err(TokenError::Length);
        }
        bytes.extend_from_slice(whole);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use asx_kernel::rng::DetRng;

    fn random(rng: &mut DetRng, most: usize) -> Schedule {
        let mut number = |most: usize| rng.below(most) as u32;
        let tags = [0, 0x00FF_FFFF, 0x0012_3456, 0x0065_4321];
        let deviations = (0..number(most + 1)).map(|_| match number(3) {
            0 => Deviation::Pick {
                of: tags[number(4) as usize],
                step: number(20),
                nth: number(3),
                point: Point::ALL[number(Point::ALL.len()) as usize],
                picked: number(300),
            },
            _ => Deviation::Task {
                of: tags[number(4) as usize],
                step: number(200),
                task: tags[number(4) as usize],
            },
        });
        Schedule { deviations: deviations.collect() }
    }

    #[test]
    fn a_token_says_what_it_was_made_of() {
        let mut rng = DetRng::new(1, 1);
        for _ in 0..2_000 {
            let schedule = random(&mut rng, 20);
            assert_eq!(Schedule::from_token(&schedule.token()), Ok(schedule.clone()));
            for points in [Points::None, Points::All, Points::Used] {
                let token = schedule.token_of(points);
                assert_eq!(Schedule::with_points(&token), Ok((schedule.clone(), points)));
            }
            let single = Schedule::from_token(&schedule.token_of(Points::All));
            assert_eq!(single, Err(TokenError::Version(ALL)));
        }
    }

    #[test]
    fn fifteen_switches_among_four_tasks_fit_into_64_characters() {
        let task = |n: u32| (n % 4 + 1) * 0x0012_3457;
        let deviations =
            (0..15).map(|n| Deviation::Task { of: task(n), step: n, task: task(n + 1) });
        let token = Schedule { deviations: deviations.collect() }.token();
        assert!(token.len() <= 64, "{token}");
    }

    #[test]
    fn every_damaged_character_is_noticed() {
        let mut rng = DetRng::new(2, 1);
        for _ in 0..200 {
            let token = random(&mut rng, 8).token().into_bytes();
            for at in 0..token.len() {
                let mut damaged = token.clone();
                damaged[at] = ALPHABET[rng.below(64)];
                if damaged != token {
                    let text = String::from_utf8(damaged).unwrap();
                    assert!(Schedule::from_token(&text).is_err(), "{text}");
                }
            }
        }
    }

    #[test]
    fn each_kind_of_damage_has_its_error() {
        let token = Schedule::default().token();
        let of = |text: &str| Schedule::from_token(text).unwrap_err();
        assert_eq!(of(""), TokenError::Length);
        assert_eq!(of("A"), TokenError::Length);
        assert_eq!(of(&token[..token.len() - 1]), TokenError::Length);
        assert_eq!(of(&format!("{token}AAAA")), TokenError::Checksum);
        assert_eq!(of(&token.replacen(|_| true, "+", 1)), TokenError::Character(0));
        assert_eq!(of(&token.replacen(|_| true, "C", 1)), TokenError::Version(9));
        assert!(!of("").to_string().is_empty());
    }

    #[test]
    fn no_text_makes_the_reader_fail_badly() {
        let mut rng = DetRng::new(3, 1);
        for _ in 0..20_000 {
            let mut bytes: Vec<u8> = (0..rng.below(24)).map(|_| rng.next_u64() as u8).collect();
            bytes.insert(0, VERSION);
            let sum = checksum(&bytes);
            bytes.extend(sum);
            let _ = Schedule::from_token(&text_of(&bytes));
        }
    }

    #[test]
    fn pairs_are_numbered_without_gaps() {
        let mut codes: Vec<u64> = (0..9)
            .flat_map(|a| (0..9).map(move |b| (a, b)))
            .map(|(a, b)| {
                assert_eq!(unpair(pair(a, b)), (a, b));
                pair(a, b)
            })
            .collect();
        codes.sort_unstable();
        assert!(codes.into_iter().eq(0..81));
    }
}
