//! Every history of a channel that grants is one of the law without grants, in which nobody that
//! was woken was slow to ask again.
//!
//! Four senders, a bystander and a receiver take their steps in every order, once per distinct
//! state, on a channel that grants and on the kernel's, whose woken senders ask again at once, by
//! themselves. Answers, wakes and all that can be seen must be equal after each step.

use std::collections::{HashSet, VecDeque};

use asx_kernel::channel::{Channel, Recv as Received, Reserve as Asked, Sent, WaiterId};

use crate::channel::law::Law;

const SENDERS: usize = 4;
const RECEIVER: usize = 9;

#[derive(Clone, Copy, Debug)]
enum Op {
    Reserve(usize),
    Leave(usize),
    Send(usize),
    Abort(usize),
    TrySend,
    Evict,
    Recv,
    Close,
}

/// What a step came to, and who was woken, in order.
type Effect = (&'static str, Option<u8>, Vec<usize>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Waiting,
    Holding,
    Done,
}

/// The kernel's channel; `held`: woken, has asked again, and was not polled since.
#[derive(Clone)]
struct Prompt {
    channel: Channel<u8, usize>,
    places: [Option<WaiterId>; SENDERS],
    held: [bool; SENDERS],
}

impl Prompt {
    fn step(&mut self, op: Op) -> Effect {
        let channel = &mut self.channel;
        let (answer, value, wakes) = match op {
            Op::Reserve(n) if std::mem::take(&mut self.held[n]) => ("granted", None, vec![]),
            Op::Reserve(n) => asked(channel.reserve(&mut self.places[n], n).ok()),
            Op::Leave(n) if std::mem::take(&mut self.held[n]) => {
                ("left", None, channel.abort().into_iter().collect())
            }
            Op::Leave(n) => {
                let left = self.places[n].take().map(|place| channel.leave(place));
                ("left", None, left.and_then(|left| left.wake).into_iter().collect())
            }
            Op::Abort(_) => ("aborted", None, channel.abort().into_iter().collect()),
            Op::Recv => received(channel.recv(RECEIVER)),
            Op::Close => {
                let wakes = channel.close_receiver().wakes;
                for held in self.held.iter_mut().filter(|held| **held) {
                    *held = false;
                    assert_eq!(channel.abort(), None);
                }
                return ("closed", None, wakes);
            }
            op => sent(channel, op),
        };
        (answer, value, self.ask_again(wakes))
    }

    fn ask_again(&mut self, wakes: Vec<usize>) -> Vec<usize> {
        let (mut all, mut woken) = (vec![], VecDeque::from(wakes));
        while let Some(n) = woken.pop_front() {
            all.push(n);
            if n != RECEIVER {
                let answer = self.channel.reserve(&mut self.places[n], n);
                let Ok(Asked::Granted { wake }) = answer else {
                    panic!("it was woken: {answer:?}")
                };
                self.held[n] = true;
                woken.extend(wake);
            }
        }
        all
    }
}

/// The channel that grants.
#[derive(Clone)]
struct Grants {
    law: Law<u8, usize>,
    places: [Option<WaiterId>; SENDERS],
}

impl Grants {
    fn step(&mut self, op: Op) -> Effect {
        let law = &mut self.law;
        match op {
            Op::Reserve(n) => {
                let due = self.places[n].is_some_and(|place| law.is_due(place));
                let asked = asked(law.reserve_with(&mut self.places[n], n).0.ok());
                assert!(!due || asked.0 == "granted");
                asked
            }
            Op::Leave(n) => {
                let left = self.places[n].take().map(|place| law.leave(place));
                ("left", None, left.and_then(|left| left.wake).into_iter().collect())
            }
            Op::Abort(_) => ("aborted", None, law.abort().into_iter().collect()),
            Op::Recv => match law.try_recv() {
                Ok((value, wake)) => received(Received::Message { value, wake }),
                Err(_) => received(law.recv(RECEIVER)),
            },
            Op::Close => ("closed", None, law.close_receiver().wakes),
            op => sent(law, op),
        }
    }
}

fn asked(answer: Option<Asked<usize>>) -> Effect {
    match answer {
        Some(Asked::Granted { wake }) => ("granted", None, wake.into_iter().collect()),
        Some(Asked::Waiting(_)) => ("waiting", None, vec![]),
        None => ("disconnected", None, vec![]),
    }
}

fn received(answer: Received<u8, usize>) -> Effect {
    match answer {
        Received::Message { value, wake } => ("message", Some(value), wake.into_iter().collect()),
        Received::Waiting => ("waiting", None, vec![]),
        Received::Disconnected => ("disconnected", None, vec![]),
    }
}

/// Sends as both do.
fn sent(channel: &mut Channel<u8, usize>, op: Op) -> Effect {
    match op {
        Op::Send(n) => match channel.send(n as u8) {
            Sent::Queued { wake } => ("sent", None, wake.into_iter().collect()),
            Sent::Refused { .. } => ("refused", None, vec![]),
            Sent::NoPermit { .. } => panic!("the permit is live"),
        },
        Op::TrySend => match channel.try_send(7) {
            Ok(wake) => ("sent", None, wake.into_iter().collect()),
            Err(error) => (
                if channel.is_receiver_closed() { "gone" } else { "full" },
                {
                    assert_eq!(error.into_inner(), 7);
                    None
                },
                vec![],
            ),
        },
        Op::Evict => match channel.send_evict_oldest(8) {
            Ok(evicted) => ("evicted", evicted.old, evicted.wake.into_iter().collect()),
            Err(_) => ("full", None, vec![]),
        },
        op => panic!("{op:?} is not a send"),
    }
}

/// All that can be seen of a channel.
fn seen(channel: &Channel<u8, usize>) -> (Vec<u8>, Vec<usize>, [usize; 3], [bool; 2]) {
    channel.check().unwrap();
    let messages = channel.messages().copied().collect();
    let line = channel.waiting().map(|(_, n)| *n).collect();
    let flags = [channel.is_receiver_closed(), channel.receiver_waiting().is_some()];
    (messages, line, [channel.reserved(), channel.waiters(), channel.len()], flags)
}

#[derive(Clone)]
struct Node {
    grants: Grants,
    prompt: Prompt,
    senders: [Phase; SENDERS],
    /// Who was woken and not polled since, one bit each.
    woken: u16,
    /// How many more messages the bystander sends.
    bystander: u8,
}

impl Node {
    fn ops(&self) -> Vec<Op> {
        let mut ops = vec![];
        for (n, phase) in self.senders.iter().enumerate() {
            match phase {
                // They are alike: let them start in order.
                Phase::Idle if n > 0 && self.senders[n - 1] == Phase::Idle => {}
                Phase::Idle => ops.push(Op::Reserve(n)),
                Phase::Waiting => ops.extend([Op::Reserve(n), Op::Leave(n)]),
                Phase::Holding => ops.extend([Op::Send(n), Op::Abort(n)]),
                Phase::Done => {}
            }
        }
        if self.bystander > 0 {
            ops.extend([Op::TrySend, Op::Evict]);
        }
        if !self.prompt.channel.is_receiver_closed() {
            ops.extend([Op::Recv, Op::Close]);
        }
        ops
    }

    fn step(&mut self, op: Op) {
        let effect = self.grants.step(op);
        assert_eq!(effect, self.prompt.step(op), "{op:?}");
        assert_eq!(seen(&self.grants.law), seen(&self.prompt.channel), "{op:?}");
        let (answer, _, wakes) = effect;
        match op {
            Op::Reserve(n) | Op::Leave(n) | Op::Send(n) | Op::Abort(n) => {
                self.woken &= !(1 << n);
                self.senders[n] = match answer {
                    "granted" => Phase::Holding,
                    "waiting" => Phase::Waiting,
                    _ => Phase::Done,
                };
            }
            Op::TrySend | Op::Evict => self.bystander -= 1,
            Op::Recv | Op::Close => self.woken &= !(1 << RECEIVER),
        }
        for n in wakes {
            assert_eq!(self.woken & (1 << n), 0, "woken once until it looks");
            assert!(n == RECEIVER || self.senders[n] == Phase::Waiting, "only who waits is woken");
            self.woken |= 1 << n;
        }
        for n in (0..SENDERS).filter(|n| self.prompt.held[*n]) {
            assert!(self.woken & (1 << n) != 0, "who has a slot was told");
        }
    }
}

/// Walks every state: how many there are, and in how many of them somebody was granted a slot while
/// another was free.
fn explore(capacity: usize, bystander: u8) -> (usize, usize) {
    let channel = Channel::new(capacity).unwrap();
    let start = Node {
        grants: Grants { law: Law::granting(capacity).unwrap(), places: [None; SENDERS] },
        prompt: Prompt { channel, places: [None; SENDERS], held: [false; SENDERS] },
        senders: [Phase::Idle; SENDERS],
        woken: 0,
        bystander,
    };
    let key = |node: &Node| {
        let seen = seen(&node.prompt.channel);
        (seen, node.prompt.held, node.senders, node.woken, node.bystander)
    };
    let (mut known, mut roomy) = (HashSet::from([key(&start)]), 0);
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        for op in node.ops() {
            let mut next = node.clone();
            next.step(op);
            if known.insert(key(&next)) {
                let channel = &next.prompt.channel;
                let room = channel.len() + channel.reserved() < capacity;
                roomy += usize::from(room && next.prompt.held.contains(&true));
                open.push(next);
            }
        }
    }
    (known.len(), roomy)
}

// The numbers of states are exact, so that the walk cannot shrink unseen.

#[test]
fn one_slot_is_granted_as_if_the_head_had_asked_again() {
    assert_eq!(explore(1, 1), (525, 0));
}

#[test]
fn two_slots_are_granted_as_if_the_head_had_asked_again() {
    assert_eq!(explore(2, 2), (2191, 38));
}

#[test]
fn three_slots_are_granted_as_if_the_head_had_asked_again() {
    assert_eq!(explore(3, 2), (4594, 160));
}
