//! A channel that grants slots against one that wakes, whose woken senders ask again at once.
//!
//! Every order of the steps of a few actors is walked once per distinct state, on both. After each
//! step the answers, the wakes and all that can be seen of the channels must be equal: so each
//! history with grants is one without them, in which nobody was slow to ask again. A sender that
//! leaves before it has come for its slot gave it back; so did all of them when the receiver went.

use std::collections::{HashSet, VecDeque};

use asx_kernel::channel::{Channel, ChannelState};

use super::channel_model::{Actor, Actors, Answer, Effect, Law, Message, Op, Phase, RECEIVER};

/// The law without grants, and who has asked again and does not know yet.
#[derive(Clone)]
struct Prompt {
    law: Law,
    held: [bool; 4],
}

impl Prompt {
    fn step(&mut self, op: Op) -> Effect {
        let (answer, wakes) = match op {
            Op::Reserve(actor) if self.takes(actor) => (Answer::Granted, vec![]),
            Op::Leave(actor) if self.takes(actor) => self.law.step(Op::Abort),
            Op::Close => {
                let closed = self.law.step(op);
                for _ in self.held.iter_mut().filter_map(|held| held.then(|| *held = false)) {
                    assert_eq!(self.law.step(Op::Abort), (Answer::Done, vec![]));
                }
                return closed;
            }
            op => self.law.step(op),
        };
        (answer, self.ask_again(wakes))
    }

    fn takes(&mut self, actor: Actor) -> bool {
        std::mem::take(&mut self.held[usize::from(actor)])
    }

    /// Everybody that was woken for a slot takes it, and so do those woken by that: all of them.
    fn ask_again(&mut self, wakes: Vec<Actor>) -> Vec<Actor> {
        let (mut all, mut woken) = (vec![], VecDeque::from(wakes));
        while let Some(actor) = woken.pop_front() {
            all.push(actor);
            if actor != RECEIVER {
                let (answer, next) = self.law.step(Op::Reserve(actor));
                assert_eq!(answer, Answer::Granted);
                self.held[usize::from(actor)] = true;
                woken.extend(next);
            }
        }
        all
    }
}

#[derive(Clone)]
struct Node {
    grants: Law,
    prompt: Prompt,
    actors: Actors,
}

/// All that can be seen of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    messages: Vec<Message>,
    line: Vec<Actor>,
    numbers: [usize; 3],
    flags: [bool; 2],
    state: ChannelState,
}

fn seen(channel: &Channel<Message, Actor>) -> Seen {
    Seen {
        messages: channel.messages().copied().collect(),
        line: channel.waiting().map(|(_, actor)| *actor).collect(),
        numbers: [channel.reserved(), channel.waiters(), channel.senders()],
        flags: [channel.is_receiver_closed(), channel.receiver_waiting().is_some()],
        state: channel.state(),
    }
}

impl Node {
    fn new(capacity: usize, senders: usize, bystander: u8) -> Node {
        let law = |mut channel: Channel<Message, Actor>| {
            (1..senders).for_each(|_| assert!(channel.add_sender()));
            Law::new(channel)
        };
        Node {
            grants: law(Channel::granting(capacity).unwrap()),
            prompt: Prompt { law: law(Channel::new(capacity).unwrap()), held: [false; 4] },
            actors: Actors::new(senders, bystander),
        }
    }

    /// What decides how it goes on.
    fn key(&self) -> (Seen, [bool; 4], Actors) {
        (seen(&self.grants.channel), self.prompt.held, self.actors.clone())
    }

    fn step(&mut self, actor: Actor, op: Op) {
        let effect = self.grants.step(op);
        assert_eq!(effect, self.prompt.step(op), "{op:?}");
        self.assert_equal();
        self.actors.saw(actor, op, effect);
    }

    fn assert_equal(&self) {
        let (grants, plain) = (&self.grants.channel, &self.prompt.law.channel);
        assert_eq!((grants.check(), plain.check()), (Ok(()), Ok(())));
        assert_eq!(seen(grants), seen(plain));
        let held = self.prompt.held.iter().filter(|held| **held).count();
        assert_eq!((grants.granted(), plain.granted()), (held, 0));
    }

    /// Who has a slot to come for was told, and still waits for it.
    fn assert_told(&self) {
        for (actor, _) in self.prompt.held.iter().enumerate().filter(|(_, held)| **held) {
            assert_eq!(self.actors.senders[actor], Phase::Waiting);
            assert!(self.actors.woken & (1 << actor) != 0, "a lost sender");
        }
    }

    /// Tries what changes nothing in the walk: on copies.
    fn probe(&self) {
        let probes =
            [Op::TryReserve, Op::AddSender, Op::Drain, Op::TryRecv, Op::TrySend(9), Op::Evict(9)];
        for op in probes {
            let (mut grants, mut prompt) = (self.grants.clone(), self.prompt.clone());
            assert_eq!(grants.step(op), prompt.step(op), "{op:?}");
            assert_eq!(seen(&grants.channel), seen(&prompt.law.channel));
        }
    }
}

/// Walks every reachable state; answers how many there are, and in how many of them somebody was
/// granted a slot while another slot was free.
fn explore(capacity: usize, senders: usize, bystander: u8) -> (usize, usize) {
    let start = Node::new(capacity, senders, bystander);
    let mut known = HashSet::from([start.key()]);
    let (mut open, mut roomy) = (vec![start], 0);
    while let Some(node) = open.pop() {
        for (actor, op) in node.actors.steps() {
            let mut next = node.clone();
            next.step(actor, op);
            next.assert_told();
            if known.insert(next.key()) {
                next.probe();
                let channel = &next.grants.channel;
                let used = channel.len() + channel.reserved();
                roomy += usize::from(channel.granted() > 0 && used < capacity);
                open.push(next);
            }
        }
    }
    (known.len(), roomy)
}

// The numbers of states are exact, so that the walk cannot shrink unseen.

#[test]
fn one_slot_is_granted_as_if_the_head_had_asked_again() {
    assert_eq!(explore(1, 4, 1), (2789, 0));
}

#[test]
fn two_slots_are_granted_as_if_the_head_had_asked_again() {
    assert_eq!(explore(2, 4, 2), (10803, 236));
}

#[test]
fn three_slots_are_granted_as_if_the_head_had_asked_again() {
    assert_eq!(explore(3, 4, 3), (34869, 1656));
}
