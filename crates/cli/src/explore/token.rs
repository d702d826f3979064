//! Replay tokens: a schedule, the scenario that it belongs to, and how the run was set up.
//!
//! The text has two or three parts, separated by dots:
//!
//! ```text
//! 3f9a1c2e7d01.w2e.AQKKnAi0JAwCASDVGQ
//! |            |   the schedule, as the lab writes it
//! |            the setup, left out if it is the default: `w2` two workers, `e` with --expect
//! the first 48 bits of the scenario's digest
//! ```

use std::fmt;

use asx_conformance::Scenario;
use asx_lab::explore::{Schedule, TokenError as ScheduleError};

use super::Setup;
use crate::output::printable;

/// Characters of a token that messages show.
const SHOWN: usize = 64;

/// A replay token that belongs to the scenario at hand.
pub(super) struct Token {
    pub(super) setup: Setup,
    pub(super) schedule: Schedule,
}

/// Why a text is not a replay token of the scenario at hand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// It has not the form of a token.
    Malformed,
    /// It is a schedule alone, as older versions printed it.
    NoScenario,
    /// It belongs to another scenario, or to another version of this one.
    OtherScenario { id: String },
    /// The command line asks for other workers than the token.
    OtherWorkers { token: u16, asked: u16 },
    /// Its schedule cannot be read.
    Schedule(ScheduleError),
    /// The run has other decisions than those of the schedule.
    NotFollowed,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AGAIN: &str = "run `asx explore` again for a new one";
        match self {
            TokenError::Malformed => {
                f.write_str("not a replay token: copy it as `asx explore` printed it")
            }
            TokenError::NoScenario => {
                write!(f, "the token does not name its scenario: {AGAIN}")
            }
            TokenError::OtherScenario { id } => write!(
                f,
                "the token belongs to another scenario than `{id}`, or `{id}` was edited since: \
                 {AGAIN}"
            ),
            TokenError::OtherWorkers { token, asked } => {
                let token = match token {
                    0 => "the scenario's workers".to_owned(),
                    count => format!("--workers {count}"),
                };
                write!(f, "the token is for {token}, not for --workers {asked}")
            }
            TokenError::Schedule(error) => write!(f, "{error}"),
            TokenError::NotFollowed => write!(
                f,
                "the run does not come to the decisions of the token, which was written by \
                 another version of asx: {AGAIN}"
            ),
        }
    }
}

impl std::error::Error for TokenError {}

impl Token {
    /// Writes the token of a run.
    pub(super) fn text(scenario: &Scenario, setup: Setup, schedule: &Schedule) -> String {
        let mut text = format!("{:012x}.", scenario.digest >> 16);
        if setup.workers > 0 {
            text += &format!("w{}", setup.workers);
        }
        if setup.expect {
            text.push('e');
        }
        if !text.ends_with('.') {
            text.push('.');
        }
        text + &schedule.token()
    }

    /// Reads a token. `asked` is the setup of the command line, which may add `--expect`.
    pub(super) fn read(text: &str, scenario: &Scenario, asked: Setup) -> Result<Token, TokenError> {
        let parts: Vec<&str> = text.splitn(4, '.').collect();
        let (digest, setup, schedule) = match parts[..] {
            [digest, schedule] => (digest, "", schedule),
            [digest, setup, schedule] => (digest, setup, schedule),
            [schedule] if Schedule::from_token(schedule).is_ok() => {
                return Err(TokenError::NoScenario);
            }
            _ => return Err(TokenError::Malformed),
        };
        if digest.len() != 12 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(TokenError::Malformed);
        }
        let mut setup = read_setup(setup).ok_or(TokenError::Malformed)?;
        let schedule = Schedule::from_token(schedule).map_err(TokenError::Schedule)?;
        if u64::from_str_radix(digest, 16) != Ok(scenario.digest >> 16) {
            return Err(TokenError::OtherScenario { id: scenario.id.clone() });
        }
        if ![0, setup.workers].contains(&asked.workers) {
            let token = setup.workers;
            return Err(TokenError::OtherWorkers { token, asked: asked.workers });
        }
        setup.expect |= asked.expect;
        Ok(Token { setup, schedule })
    }
}

fn read_setup(text: &str) -> Option<Setup> {
    let (workers, expect) = match text.strip_suffix('e') {
        Some(workers) => (workers, true),
        None => (text, false),
    };
    let workers = match workers.strip_prefix('w') {
        Some(count) => count.parse().ok().filter(|count| (1..=64).contains(count))?,
        None => workers.is_empty().then_some(0)?,
    };
    Some(Setup { workers, expect })
}

/// As much of a token as identifies it in a message.
pub(super) fn shown(token: &str) -> String {
    match token.char_indices().nth(SHOWN) {
        None => format!("`{}`", printable(token)),
        Some((at, _)) => format!("`{}..`", printable(&token[..at])),
    }
}
