//! The channel law compared with a naive model, under every interleaving of a few actors.
//!
//! Senders reserve, wait, poll again without a wake, leave, send, abort and drop their handles. A
//! bystander sends without waiting. The receiver receives, polls again, gives up, refuses senders
//! and closes. In one exploration the first sender requests two slots at once. Every order of these
//! steps is explored once per distinct state. After each step the results, the wakes and the whole
//! state must agree with the model, and no actor may sleep while it has work to do.

use std::collections::HashSet;

use asx_kernel::channel::{
    Channel, ChannelState, Places, Recv, Reserve, ReserveManyRefused, Sent, TryRecvError,
    TryReserveError, TryReserveManyError, TrySendError, WaiterId,
};

type Actor = u8;
type Message = u8;

const RECEIVER: Actor = 7;
const BYSTANDER: Message = 8;

#[derive(Clone, Copy, Debug)]
enum Op {
    Reserve(Actor),
    ReserveTwo(Actor),
    Leave(Actor),
    TryReserve,
    TryReserveTwo,
    Send(Message),
    Abort,
    TrySend(Message),
    Evict(Message),
    Recv,
    TryRecv,
    CancelRecv,
    AddSender,
    DropSender,
    Refuse,
    Close,
    Drain,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Granted,
    Waiting,
    Disconnected,
    Full,
    TooMany,
    Empty,
    Done,
    HandedBack(Message),
    Evicted(Option<Message>),
    Message(Message),
    Taken(Vec<Message>),
}

type Effect = (Answer, Vec<Actor>);

/// The documented rules, implemented on plain lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Model {
    capacity: usize,
    queue: Vec<Message>,
    reserved: usize,
    /// The waiters with granted slots that they have not collected, in the order of service.
    granted: Vec<Actor>,
    /// The waiters in order, and whether each was woken for a slot that was revoked and has not
    /// retried since.
    line: Vec<(Actor, bool)>,
    receiver_sleeps: bool,
    receiver_gone: bool,
    /// Whether no further slots are granted.
    refuses: bool,
    handles: usize,
}

impl Model {
    fn room(&self) -> bool {
        self.queue.len() + self.reserved < self.capacity
    }

    fn no_senders(&self) -> bool {
        self.handles + self.reserved + self.line.len() == 0
    }

    fn state(&self) -> ChannelState {
        match (self.receiver_gone, self.no_senders()) {
            (false, false) => ChannelState::Open,
            (false, true) => ChannelState::SenderClosed,
            (true, false) => ChannelState::ReceiverClosed,
            (true, true) => ChannelState::FullyClosed,
        }
    }

    /// Grants the free slots to waiters in line, and wakes those that are asleep.
    fn grant(&mut self) -> Vec<Actor> {
        let mut woken = vec![];
        while self.room() && !self.line.is_empty() {
            let (head, awake) = self.line.remove(0);
            self.reserved += 1;
            self.granted.push(head);
            woken.extend((!awake).then_some(head));
        }
        woken
    }

    /// Removes the grants of an actor, which collects or abandons them. Returns their number.
    fn take_grants(&mut self, actor: Actor) -> usize {
        let before = self.granted.len();
        self.granted.retain(|other| *other != actor);
        before - self.granted.len()
    }

    /// Whether no message will arrive any more.
    fn is_over(&self) -> bool {
        self.no_senders() || self.receiver_gone || (self.refuses && self.reserved == 0)
    }

    fn is_in_line(&self, actor: Actor) -> bool {
        self.line.iter().any(|(other, _)| *other == actor)
    }

    /// Wakes the sleeping waiters in line and frees the grants that were not collected.
    fn send_away(&mut self) -> Vec<Actor> {
        self.reserved -= self.granted.len();
        self.granted.clear();
        let line = std::mem::take(&mut self.line);
        line.iter().filter(|(_, awake)| !awake).map(|(actor, _)| *actor).collect()
    }

    fn wake_receiver(&mut self) -> Vec<Actor> {
        if std::mem::take(&mut self.receiver_sleeps) { vec![RECEIVER] } else { vec![] }
    }

    fn wake_receiver_if_alone(&mut self) -> Vec<Actor> {
        if self.is_over() { self.wake_receiver() } else { vec![] }
    }

    /// Takes a place at the tail, or keeps the actor's last one.
    fn wait(&mut self, actor: Actor) -> Effect {
        match self.line.iter_mut().rfind(|(other, _)| *other == actor) {
            Some((_, awake)) => *awake = false,
            None => self.line.push((actor, false)),
        }
        (Answer::Waiting, vec![])
    }

    fn push(&mut self, message: Message) -> Vec<Actor> {
        self.queue.push(message);
        self.wake_receiver()
    }

    fn step(&mut self, op: Op) -> Effect {
        match op {
            Op::Reserve(actor) => self.reserve(actor),
            Op::ReserveTwo(actor) => self.reserve_two(actor),
            Op::Leave(actor) => {
                self.line.retain(|(other, _)| *other != actor);
                self.reserved -= self.take_grants(actor);
                let next = self.grant();
                let alone = self.wake_receiver_if_alone();
                (Answer::Done, [next, alone].concat())
            }
            Op::TryReserve | Op::TryReserveTwo | Op::TrySend(_) | Op::Evict(_)
                if self.refuses || self.no_senders() =>
            {
                (Answer::Disconnected, vec![])
            }
            Op::TryReserve | Op::TrySend(_) if !self.line.is_empty() || !self.room() => {
                (Answer::Full, vec![])
            }
            Op::TryReserve => {
                self.reserved += 1;
                (Answer::Granted, vec![])
            }
            Op::TryReserveTwo if self.capacity < 2 => (Answer::TooMany, vec![]),
            Op::TryReserveTwo => {
                if !self.line.is_empty() || self.queue.len() + self.reserved + 2 > self.capacity {
                    return (Answer::Full, vec![]);
                }
                self.reserved += 2;
                (Answer::Granted, vec![])
            }
            Op::TrySend(message) => (Answer::Done, self.push(message)),
            Op::Evict(message) => {
                if self.room() {
                    return (Answer::Evicted(None), self.push(message));
                }
                // Uncollected grants count as room; their waiter becomes the head again.
                if let Some(last) = self.granted.pop() {
                    self.reserved -= 1;
                    self.line.insert(0, (last, true));
                    return (Answer::Evicted(None), self.push(message));
                }
                if self.queue.is_empty() {
                    return (Answer::Full, vec![]);
                }
                let old = self.queue.remove(0);
                (Answer::Evicted(Some(old)), self.push(message))
            }
            Op::Send(message) => {
                self.reserved -= 1;
                if self.receiver_gone {
                    return (Answer::HandedBack(message), vec![]);
                }
                (Answer::Done, self.push(message))
            }
            Op::Abort => {
                self.reserved -= 1;
                let head = self.grant();
                let alone = self.wake_receiver_if_alone();
                (Answer::Done, [head, alone].concat())
            }
            Op::Recv | Op::TryRecv => self.receive(matches!(op, Op::Recv)),
            Op::CancelRecv => {
                self.receiver_sleeps = false;
                (Answer::Done, vec![])
            }
            Op::AddSender if self.no_senders() => (Answer::Disconnected, vec![]),
            Op::AddSender => {
                self.handles += 1;
                (Answer::Done, vec![])
            }
            Op::DropSender => {
                self.handles -= 1;
                (Answer::Done, self.wake_receiver_if_alone())
            }
            Op::Refuse => {
                self.refuses = true;
                let wakes = self.send_away();
                let receiver = self.wake_receiver_if_alone();
                (Answer::Done, [wakes, receiver].concat())
            }
            Op::Close => {
                self.receiver_gone = true;
                self.refuses = true;
                self.receiver_sleeps = false;
                let wakes = self.send_away();
                (Answer::Taken(std::mem::take(&mut self.queue)), wakes)
            }
            Op::Drain => {
                let taken = std::mem::take(&mut self.queue);
                (Answer::Taken(taken), self.grant())
            }
        }
    }

    fn reserve(&mut self, actor: Actor) -> Effect {
        if self.refuses || self.no_senders() {
            return (Answer::Disconnected, vec![]);
        }
        if self.take_grants(actor) > 0 {
            return (Answer::Granted, vec![]);
        }
        if !self.line.is_empty() || !self.room() {
            return self.wait(actor);
        }
        self.reserved += 1;
        (Answer::Granted, vec![])
    }

    /// Takes two consecutive places. The second is the one that is woken.
    fn reserve_two(&mut self, actor: Actor) -> Effect {
        if self.refuses || self.no_senders() {
            return (Answer::Disconnected, vec![]);
        }
        if self.is_in_line(actor) {
            return self.wait(actor);
        }
        if self.take_grants(actor) > 0 {
            return (Answer::Granted, vec![]);
        }
        self.line.extend([(actor, true), (actor, false)]);
        let _ = self.grant();
        if self.is_in_line(actor) {
            return (Answer::Waiting, vec![]);
        }
        self.take_grants(actor);
        (Answer::Granted, vec![])
    }

    fn receive(&mut self, wait: bool) -> Effect {
        if !self.queue.is_empty() {
            return (Answer::Message(self.queue.remove(0)), self.grant());
        }
        if self.is_over() {
            return (Answer::Disconnected, vec![]);
        }
        self.receiver_sleeps |= wait;
        (if wait { Answer::Waiting } else { Answer::Empty }, vec![])
    }
}

/// The law, with the places of its waiters.
#[derive(Clone)]
struct Law {
    channel: Channel<Message, Actor>,
    places: [Option<WaiterId>; 4],
    /// The places of the sender that requests two slots.
    two: Option<Places>,
}

impl Law {
    fn step(&mut self, op: Op) -> Effect {
        let channel = &mut self.channel;
        match op {
            Op::Reserve(actor) => {
                let place = &mut self.places[usize::from(actor)];
                let answer = channel.reserve(place, actor);
                assert_eq!(place.is_some(), matches!(answer, Ok(Reserve::Waiting(_))));
                match answer {
                    Ok(Reserve::Granted) => (Answer::Granted, vec![]),
                    Ok(Reserve::Waiting(_)) => (Answer::Waiting, vec![]),
                    Err(_) => (Answer::Disconnected, vec![]),
                }
            }
            Op::ReserveTwo(actor) => {
                let (answer, _) = channel.reserve_many_with(&mut self.two, 2, actor);
                assert_eq!(self.two.is_some(), matches!(answer, Ok(Reserve::Waiting(_))));
                match answer {
                    Ok(Reserve::Granted) => (Answer::Granted, vec![]),
                    Ok(Reserve::Waiting(_)) => (Answer::Waiting, vec![]),
                    Err(ReserveManyRefused::Disconnected) => (Answer::Disconnected, vec![]),
                    Err(ReserveManyRefused::TooMany) => (Answer::TooMany, vec![]),
                }
            }
            Op::TryReserveTwo => match channel.try_reserve_many(2) {
                Ok(()) => (Answer::Granted, vec![]),
                Err(TryReserveManyError::Disconnected) => (Answer::Disconnected, vec![]),
                Err(TryReserveManyError::Full) => (Answer::Full, vec![]),
                Err(TryReserveManyError::TooMany) => (Answer::TooMany, vec![]),
            },
            Op::Leave(actor) if self.two.is_some() && actor == 0 => {
                let left = self.two.take().map(|places| channel.leave_many(places));
                (Answer::Done, left.map_or(vec![], |left| left.wakes))
            }
            Op::Leave(actor) => {
                let place = self.places[usize::from(actor)].take();
                let left = place.map(|place| channel.leave(place));
                assert!(left.is_none_or(|left| left.token.is_none_or(|token| token == actor)));
                (Answer::Done, Vec::from_iter(left.and_then(|left| left.wake)))
            }
            Op::TryReserve => match channel.try_reserve() {
                Ok(()) => (Answer::Granted, vec![]),
                Err(TryReserveError::Disconnected) => (Answer::Disconnected, vec![]),
                Err(TryReserveError::Full) => (Answer::Full, vec![]),
            },
            Op::Send(message) => match channel.send(message) {
                Sent::Queued { wake } => (Answer::Done, Vec::from_iter(wake)),
                Sent::Refused { value } => (Answer::HandedBack(value), vec![]),
                Sent::NoPermit { .. } => panic!("the permit is live"),
            },
            Op::Abort => (Answer::Done, Vec::from_iter(channel.abort())),
            Op::TrySend(message) => match channel.try_send(message) {
                Ok(wake) => (Answer::Done, Vec::from_iter(wake)),
                Err(error) => (refused(error, message), vec![]),
            },
            Op::Evict(message) => match channel.send_evict_oldest(message) {
                Ok(sent) => (Answer::Evicted(sent.old), Vec::from_iter(sent.wake)),
                Err(error) => (refused(error, message), vec![]),
            },
            Op::Recv => match channel.recv(RECEIVER) {
                Recv::Message { value, wake } => (Answer::Message(value), Vec::from_iter(wake)),
                Recv::Disconnected => (Answer::Disconnected, vec![]),
                Recv::Waiting => (Answer::Waiting, vec![]),
            },
            Op::TryRecv => match channel.try_recv() {
                Ok((value, wake)) => (Answer::Message(value), Vec::from_iter(wake)),
                Err(TryRecvError::Disconnected) => (Answer::Disconnected, vec![]),
                Err(TryRecvError::Empty) => (Answer::Empty, vec![]),
            },
            Op::CancelRecv => {
                channel.cancel_recv();
                (Answer::Done, vec![])
            }
            Op::AddSender if channel.add_sender() => (Answer::Done, vec![]),
            Op::AddSender => (Answer::Disconnected, vec![]),
            Op::DropSender => (Answer::Done, Vec::from_iter(channel.drop_sender())),
            Op::Refuse => {
                let refused = channel.refuse_senders();
                (Answer::Done, refused.wakes.chain(refused.receiver).collect())
            }
            Op::Close => {
                let closed = channel.close_receiver();
                (Answer::Taken(closed.messages.into()), closed.wakes.collect())
            }
            Op::Drain => {
                let (messages, wake) = channel.drain();
                (Answer::Taken(messages.into()), wake)
            }
        }
    }

    fn assert_equals(&self, model: &Model) {
        let channel = &self.channel;
        assert_eq!(channel.check(), Ok(()));
        assert!(channel.messages().eq(&model.queue));
        assert_eq!((channel.len(), channel.reserved()), (model.queue.len(), model.reserved));
        assert_eq!((channel.senders(), channel.waiters()), (model.handles, model.line.len()));
        assert_eq!(channel.is_receiver_closed(), model.receiver_gone);
        assert_eq!(channel.is_refusing(), model.refuses);
        assert_eq!(channel.free(), model.capacity - model.queue.len() - model.reserved);
        assert_eq!(channel.receiver_waiting().is_some(), model.receiver_sleeps);
        assert_eq!(channel.state(), model.state());
        let asleep = model.line.iter().filter(|(_, awake)| !awake).map(|(actor, _)| *actor);
        assert!(channel.waiting().map(|(_, &actor)| actor).eq(asleep));
        assert_eq!(channel.granted(), model.granted.len());
        let has_slot = |actor: &Actor| {
            let one = self.places[usize::from(*actor)];
            one.is_some_and(|place| channel.has_grant(place)) || (*actor == 0 && self.two.is_some())
        };
        assert!(model.granted.iter().all(has_slot));
        let has_two = model.granted.contains(&0) && !model.is_in_line(0);
        assert!(self.two.is_none_or(|places| channel.has_grants(places) == has_two));
    }
}

fn refused(error: TrySendError<Message>, message: Message) -> Answer {
    let answer = match error {
        TrySendError::Disconnected(_) => Answer::Disconnected,
        TrySendError::Full(_) => Answer::Full,
    };
    assert_eq!(error.into_inner(), message);
    answer
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Waiting,
    Holding,
    Done,
}

/// The state of the actors, which determines the possible steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Actors {
    senders: Vec<Phase>,
    /// Whether each sender still has its handle.
    handles: Vec<bool>,
    receiver: Phase,
    /// The actors that were woken and have not polled since, one bit each.
    woken: u8,
    /// The number of further messages of the bystander.
    bystander: u8,
    /// `Some` if the first sender requests two slots; then whether it has sent into one of them.
    two: Option<bool>,
}

#[derive(Clone)]
struct Node {
    law: Law,
    model: Model,
    actors: Actors,
}

impl Node {
    fn new(capacity: usize, senders: usize, bystander: u8) -> Node {
        let mut channel = Channel::new(capacity).unwrap();
        (1..senders).for_each(|_| assert!(channel.add_sender()));
        let model = Model {
            capacity,
            queue: vec![],
            reserved: 0,
            granted: vec![],
            line: vec![],
            receiver_sleeps: false,
            receiver_gone: false,
            refuses: false,
            handles: senders,
        };
        let actors = Actors {
            senders: vec![Phase::Idle; senders],
            handles: vec![true; senders],
            receiver: Phase::Idle,
            woken: 0,
            bystander,
            two: None,
        };
        Node { law: Law { channel, places: [None; 4], two: None }, model, actors }
    }

    /// Returns the step with which a sender reserves.
    fn asks(&self, actor: Actor) -> Op {
        match self.actors.two {
            Some(_) if actor == 0 => Op::ReserveTwo(actor),
            _ => Op::Reserve(actor),
        }
    }

    /// Returns every step that some actor can take.
    fn steps(&self) -> Vec<(Actor, Op)> {
        let mut steps = vec![];
        for (index, phase) in self.actors.senders.iter().enumerate() {
            let actor = index as Actor;
            match phase {
                // The senders are symmetric, so let them start in order.
                Phase::Idle if index > 0 && self.actors.senders[index - 1] == Phase::Idle => {}
                Phase::Idle => steps.push((actor, self.asks(actor))),
                Phase::Waiting => {
                    steps.extend([(actor, self.asks(actor)), (actor, Op::Leave(actor))]);
                }
                Phase::Holding => steps.extend([(actor, Op::Send(actor)), (actor, Op::Abort)]),
                Phase::Done => {}
            }
            // Only the first sender drops its handle while it waits or holds a permit.
            let may_drop = *phase == Phase::Done || (index == 0 && *phase != Phase::Idle);
            if self.actors.handles[index] && may_drop {
                steps.push((actor, Op::DropSender));
            }
        }
        if self.actors.bystander > 0 && self.model.handles > 0 {
            steps.extend([(BYSTANDER, Op::TrySend(BYSTANDER)), (BYSTANDER, Op::Evict(BYSTANDER))]);
        }
        match self.actors.receiver {
            Phase::Idle => {
                let ops = [Op::Recv, Op::Close, Op::Refuse];
                steps.extend(ops.map(|op| (RECEIVER, op)));
            }
            Phase::Waiting => {
                let ops = [Op::Recv, Op::CancelRecv, Op::Close, Op::Refuse];
                steps.extend(ops.map(|op| (RECEIVER, op)));
            }
            Phase::Holding | Phase::Done => {}
        }
        steps
    }

    fn step(&mut self, actor: Actor, op: Op) {
        let effect = self.law.step(op);
        assert_eq!(effect, self.model.step(op), "{op:?}");
        let (answer, wakes) = effect;
        let actors = &mut self.actors;
        match op {
            Op::DropSender => actors.handles[usize::from(actor)] = false,
            Op::TrySend(_) | Op::Evict(_) => actors.bystander -= 1,
            Op::Close => actors.receiver = Phase::Done,
            // The receiver itself refuses, so it is awake.
            Op::Refuse => {}
            Op::Send(_) | Op::Abort if actor == 0 && actors.two == Some(false) => {
                actors.two = Some(true);
            }
            _ => {
                let phase = match answer {
                    Answer::Granted => Phase::Holding,
                    Answer::Waiting => Phase::Waiting,
                    _ if actor == RECEIVER => Phase::Idle,
                    _ => Phase::Done,
                };
                match actors.senders.get_mut(usize::from(actor)) {
                    Some(sender) => *sender = phase,
                    None => actors.receiver = phase,
                }
                actors.woken &= !(1 << actor);
            }
        }
        for woken in wakes {
            let phase = actors.senders.get(usize::from(woken)).unwrap_or(&actors.receiver);
            assert_eq!(*phase, Phase::Waiting, "only waiting actors are woken");
            assert_eq!(actors.woken & (1 << woken), 0, "an actor is woken once until it polls");
            actors.woken |= 1 << woken;
        }
    }

    fn is_asleep(&self, actor: Actor, phase: Phase) -> bool {
        phase == Phase::Waiting && self.actors.woken & (1 << actor) == 0
    }

    /// A sleeping actor has no work, and another actor exists that can wake it.
    fn assert_no_lost_wakeup(&self) {
        let model = &self.model;
        let mut anybody_asleep = self.is_asleep(RECEIVER, self.actors.receiver);
        if anybody_asleep {
            assert!(model.queue.is_empty() && !model.is_over(), "a lost wakeup of the receiver");
        }
        let mut anybody_able = self.actors.receiver != Phase::Done && !anybody_asleep;
        for (index, &phase) in self.actors.senders.iter().enumerate() {
            let actor = index as Actor;
            if self.is_asleep(actor, phase) {
                assert!(!model.refuses, "a sender sleeps on a closed channel");
                assert!(!model.room() && model.is_in_line(actor), "a lost wakeup of a sender");
                anybody_asleep = true;
            } else {
                anybody_able |= phase != Phase::Done || self.actors.handles[index];
            }
        }
        assert!(anybody_able || !anybody_asleep, "everybody sleeps");
    }

    /// Tries operations that do not change the state, on copies.
    fn probe(&self) {
        let probes = [
            Op::TryReserve,
            Op::TryReserveTwo,
            Op::AddSender,
            Op::Drain,
            Op::TryRecv,
            Op::TrySend(9),
            Op::Evict(9),
        ];
        for op in probes {
            let mut law = self.law.clone();
            let mut model = self.model.clone();
            assert_eq!(law.step(op), model.step(op), "{op:?}");
            law.assert_equals(&model);
        }
        self.probe_quiet_ways();
    }

    /// The `quietly` variants have the same effect as the normal ones, or none. Returns whether a
    /// message was sent with one.
    fn probe_quiet_ways(&self) -> bool {
        let (mut law, mut model) = (self.law.clone(), self.model.clone());
        assert_eq!(law.channel.try_send_quietly(9), Err(9), "a clone has no spare memory");
        law.channel.try_reserve_room().unwrap();
        let sent = law.channel.try_send_quietly(9) == Ok(());
        if sent {
            assert_eq!(model.step(Op::TrySend(9)), (Answer::Done, vec![]));
        }
        law.assert_equals(&model);
        if let Some(value) = law.channel.try_recv_quietly() {
            assert_eq!(model.step(Op::TryRecv), (Answer::Message(value), vec![]));
        }
        law.assert_equals(&model);
        sent
    }
}

/// Explores every reachable state. Returns the number of states.
fn explore(capacity: usize, senders: usize, bystander: u8) -> usize {
    explore_from(Node::new(capacity, senders, bystander))
}

fn explore_from(start: Node) -> usize {
    assert!(start.probe_quiet_ways(), "there is no waiter, and a slot is free");
    let mut seen = HashSet::from([(start.model.clone(), start.actors.clone())]);
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        for (actor, op) in node.steps() {
            let mut next = node.clone();
            next.step(actor, op);
            next.law.assert_equals(&next.model);
            next.assert_no_lost_wakeup();
            if seen.insert((next.model.clone(), next.actors.clone())) {
                next.probe();
                open.push(next);
            }
        }
    }
    seen.len()
}

// The numbers of states are exact, so that a smaller exploration fails.

#[test]
fn one_slot_agrees_with_the_model_under_every_interleaving() {
    assert_eq!(explore(1, 4, 1), 4936);
}

#[test]
fn two_slots_agree_with_the_model_under_every_interleaving() {
    assert_eq!(explore(2, 4, 1), 11530);
}

#[test]
fn a_busy_bystander_agrees_with_the_model_under_every_interleaving() {
    assert_eq!(explore(2, 2, 3), 1832);
}

#[test]
fn a_sender_that_wants_two_slots_agrees_with_the_model_under_every_interleaving() {
    for (capacity, states) in [(2, 4750), (3, 7744)] {
        let mut start = Node::new(capacity, 3, 1);
        start.actors.two = Some(false);
        assert_eq!(explore_from(start), states);
    }
}
