//! What goes wrong where: asked of the strategy, and told in words.

use std::time::Duration;

use asx_runtime::footprint;

use super::datagrams::Flow;
use super::faults::Kind;
use super::network::Network;

/// By how much something is late.
const DELAYS: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_secs(1), Duration::from_secs(60)];

/// How long nothing gets through.
const OUTAGES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// What stands for the faults that are left in footprints.
const LEFT: u64 = 0x6C65_6674_206F_6620;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mishap {
    /// Only so many bytes of a segment come.
    Chunk(usize),
    Delay(Duration),
    Reset,
    Refusal,
    HalfOpen,
    Partition(Duration),
    Accept,
    Drop,
    Duplicate,
    Reorder,
    Lookup,
}

impl Mishap {
    fn kind(self) -> Kind {
        match self {
            Mishap::Chunk(_) => Kind::Chunk,
            Mishap::Delay(_) => Kind::Delay,
            Mishap::Reset => Kind::Reset,
            Mishap::Refusal => Kind::Refusal,
            Mishap::HalfOpen => Kind::HalfOpen,
            Mishap::Partition(_) => Kind::Partition,
            Mishap::Accept => Kind::Accept,
            Mishap::Drop => Kind::Drop,
            Mishap::Duplicate => Kind::Duplicate,
            Mishap::Reorder => Kind::Reorder,
            Mishap::Lookup => Kind::Lookup,
        }
    }
}

/// A number in words: 1st, 2nd.
fn ordinal(number: u64) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

impl Network {
    /// Asks for one of these, of which there may be none left; `words` tells it.
    fn ask(
        &mut self,
        place: (u64, u64),
        menu: impl IntoIterator<Item = Mishap>,
        words: impl FnOnce(Mishap) -> String,
    ) -> Option<Mishap> {
        if !self.has_faults {
            return None;
        }
        footprint::touch(LEFT, false);
        let is_left = |mishap: &Mishap| self.faults.has(mishap.kind());
        let menu: Vec<Mishap> = menu.into_iter().filter(is_left).collect();
        let driver = self.driver().filter(|_| !menu.is_empty())?;
        let picked = driver.pick(place, menu.len() + 1);
        let mishap = *menu.get(picked.checked_sub(1)?)?;
        footprint::touch(LEFT, true);
        self.faults.spend(mishap.kind());
        driver.made(words(mishap), !matches!(mishap, Mishap::Chunk(_)));
        Some(mishap)
    }

    /// What happens to the next segment of a pipe, of which so many bytes could come.
    pub(super) fn segment_mishap(&mut self, at: usize, bytes: usize) -> Option<Mishap> {
        if !self.has_faults {
            return None;
        }
        let pipe = &self.pipes[at];
        let from = pipe.from_address.to_string();
        let to = pipe.to_address.to_string();
        let service = pipe.service.map_or_else(String::new, |at| at.to_string());
        let towards = pipe.towards;
        let place = (pipe.path, pipe.segments);
        let nth = ordinal(pipe.segments + 1);
        let chunks = [1, bytes / 2].into_iter().enumerate();
        // Half of two or three bytes is one.
        let chunks = chunks.filter(|(nth, chunk)| *chunk < bytes && (*nth == 0 || *chunk > 1));
        let menu = (chunks.map(|(_, chunk)| Mishap::Chunk(chunk)))
            .chain(DELAYS.map(Mishap::Delay))
            .chain([Mishap::Reset, Mishap::HalfOpen])
            .chain(OUTAGES.map(Mishap::Partition));
        self.ask(place, menu, |mishap| match mishap {
            Mishap::Chunk(chunk) => {
                format!(
                    "{chunk} of {bytes} bytes came first of the {nth} segment from {from} to {to}"
                )
            }
            Mishap::Delay(time) => {
                format!("the {nth} segment from {from} to {to} came {time:?} late")
            }
            Mishap::Reset => {
                format!("the {nth} segment from {from} to {to} was lost; the connection was reset")
            }
            Mishap::HalfOpen => format!(
                "the {nth} segment from {from} to {to} was lost; the connection went dead, and \
                 nobody was told"
            ),
            _ => {
                outage(mishap, &service, towards, &format!("the {nth} segment from {from} to {to}"))
            }
        })
    }

    /// What happens to a connection that is asked for.
    pub(super) fn connection_mishap(&mut self, at: usize, is_heard: bool) -> Option<Mishap> {
        if !self.has_faults {
            return None;
        }
        let pipe = &self.pipes[at];
        let from = pipe.from_address.to_string();
        let to = pipe.to_address.to_string();
        let service = pipe.service.map_or_else(String::new, |at| at.to_string());
        let place = (pipe.path, pipe.segments);
        let refusal = is_heard.then_some(Mishap::Refusal);
        let menu = (refusal.into_iter())
            .chain(DELAYS.map(Mishap::Delay))
            .chain([Mishap::HalfOpen])
            .chain(OUTAGES.map(Mishap::Partition));
        self.ask(place, menu, |mishap| match mishap {
            Mishap::Refusal => format!("the connection from {from} to {to} was refused"),
            Mishap::Delay(time) => {
                format!("the connection from {from} to {to} was made {time:?} late")
            }
            Mishap::HalfOpen => format!("the connection from {from} to {to} was never answered"),
            _ => outage(mishap, &service, true, &format!("the connection from {from} to {to}")),
        })
    }

    /// What happens to an accept that could take a connection.
    pub(super) fn accept_mishap(&mut self, id: usize, place: (u64, u64)) -> Option<Mishap> {
        let at = self.sockets[id].local.clone();
        self.ask(place, [Mishap::Accept], |_| {
            format!("no descriptor to spare for a connection to {at}")
        })
    }

    /// What happens to a lookup.
    pub(super) fn lookup_mishap(&mut self, host: &str) -> Option<Mishap> {
        let place = host.bytes().fold(LEFT, |hash, byte| hash.rotate_left(7) ^ u64::from(byte));
        self.ask((place, 0), [Mishap::Lookup], |_| format!("a failed lookup of `{host}`"))
    }

    /// What happens to the next datagram of a flow.
    pub(super) fn datagram_mishap(&mut self, at: usize) -> Option<Mishap> {
        if !self.has_faults {
            return None;
        }
        let Flow { path, from, to, delivered, .. } = self.flows[at];
        let from = self.sockets[from].local.to_string();
        let nth = ordinal(delivered + 1);
        let next = ordinal(delivered + 2);
        let reorder = (self.flows[at].queue.len() > 1).then_some(Mishap::Reorder);
        let menu = ([Mishap::Drop, Mishap::Duplicate].into_iter())
            .chain(reorder)
            .chain(DELAYS.map(Mishap::Delay))
            .chain(OUTAGES.map(Mishap::Partition));
        self.ask((path, delivered), menu, |mishap| match mishap {
            Mishap::Drop => format!("the {nth} datagram from {from} to {to} was lost"),
            Mishap::Duplicate => format!("the {nth} datagram from {from} to {to} came twice"),
            Mishap::Reorder => {
                format!("the {nth} datagram from {from} to {to} came after the {next}")
            }
            Mishap::Delay(time) => {
                format!("the {nth} datagram from {from} to {to} came {time:?} late")
            }
            _ => {
                let what = format!("the {nth} datagram from {from} to {to}");
                outage(mishap, &to.to_string(), true, &what)
            }
        })
    }
}

/// A cut in words.
fn outage(mishap: Mishap, service: &str, towards: bool, since: &str) -> String {
    let time = match mishap {
        Mishap::Partition(time) => time,
        _ => Duration::ZERO,
    };
    let way = if towards { "to" } else { "out of" };
    format!("for {time:?} nothing got {way} {service}, from {since} on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_in_words() {
        let told = [1, 2, 3, 4, 11, 12, 13, 21, 102, 113].map(ordinal);
        let expected =
            ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "113th"];
        assert_eq!(told, expected);
    }
}
