//! The browser pump compared with a literal model, for every short sequence of events.

use asx_kernel::pump::{
    Capabilities, Capability, Enter, HostCall, Leave, Limit, Pump, PumpConfig, PumpState, Refused,
};
use asx_kernel::time::Time;
use std::time::Duration;

const BURST: u32 = 2;
const DEPTH: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Wake,
    /// The host call arrives; or a nested call, if a drain runs; or an unexpected one.
    Enter,
    Step,
    /// The step queued page code.
    YieldToPage,
    LeaveDone,
    LeaveWork,
    /// The host requests a report of the end of the turn; the end is reported.
    WatchTurn,
    EndTurn,
    TogglePost,
    ToggleMicrotask,
    Trap,
}

const OPS: [Op; 11] = [
    Op::Wake,
    Op::Enter,
    Op::Step,
    Op::YieldToPage,
    Op::WatchTurn,
    Op::EndTurn,
    Op::LeaveDone,
    Op::LeaveWork,
    Op::TogglePost,
    Op::ToggleMicrotask,
    Op::Trap,
];

/// The rules as plain flags, with the host: its mailbox of calls and the wakes that are not yet
/// handled.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    running: bool,
    steps: u32,
    /// The steps of the turn, for all its drains, and whether it was refused one.
    taken: u32,
    refused: bool,
    paused: bool,
    /// Whether the turn had a drain, whether its end was reported, and whether the report was
    /// requested: granted or denied.
    drained: bool,
    ended: bool,
    watched: Option<bool>,
    pending: bool,
    /// The denied call that is owed.
    owed: Option<HostCall>,
    dead: bool,
    post: bool,
    microtask: bool,
    mailbox: Vec<HostCall>,
    unserved: bool,
    turn: u64,
    batch: u64,
    handoff: HostCall,
}

impl Model {
    fn new(handoff: HostCall) -> Model {
        Model {
            running: false,
            steps: 0,
            taken: 0,
            refused: false,
            paused: false,
            drained: false,
            ended: false,
            watched: None,
            pending: false,
            owed: None,
            dead: false,
            post: true,
            microtask: true,
            mailbox: Vec::new(),
            unserved: false,
            turn: 1,
            batch: 0,
            handoff,
        }
    }

    /// Puts the call into the mailbox, or owes it if it is denied.
    fn call(&mut self, call: HostCall) -> bool {
        let granted = if call == HostCall::Microtask { self.microtask } else { self.post };
        if granted {
            self.mailbox.push(call);
        }
        self.owed = (!granted).then_some(call);
        granted
    }

    fn state(&self) -> PumpState {
        match (self.running, self.mailbox.is_empty()) {
            (true, _) => PumpState::Running,
            (false, true) => PumpState::Idle,
            (false, false) => PumpState::Scheduled,
        }
    }

    fn apply(&mut self, pump: &mut Pump, op: Op) {
        match op {
            Op::Wake => self.wake(pump),
            Op::Enter => self.enter(pump),
            Op::Step => self.step(pump),
            Op::YieldToPage => {
                self.paused |= self.running;
                pump.yield_to_page();
            }
            Op::WatchTurn => self.watch_turn(pump),
            Op::EndTurn => self.end_turn(pump),
            Op::LeaveDone => self.leave(pump, false),
            Op::LeaveWork => self.leave(pump, true),
            Op::TogglePost => {
                self.post = !self.post;
                let macro_capability = self.handoff.capability();
                self.toggle(pump, macro_capability, self.post);
            }
            Op::ToggleMicrotask => {
                self.microtask = !self.microtask;
                self.toggle(pump, Capability::Microtask, self.microtask);
            }
            Op::Trap => {
                let trapped = pump.trap("test");
                assert_eq!(pump.trapped(), Some(trapped));
                self.dead = true;
                self.running = false;
                self.owed = None;
                self.mailbox.clear();
            }
        }
    }

    fn wake(&mut self, pump: &mut Pump) {
        let answer = pump.wake();
        if self.dead {
            return assert!(matches!(answer, Err(Refused::Trapped(_))));
        }
        self.unserved = true;
        if self.running {
            self.pending = true;
            assert_eq!(answer, Ok(None));
        } else if !self.mailbox.is_empty() {
            assert_eq!(answer, Ok(None));
        } else {
            let call = self.owed.unwrap_or(HostCall::Microtask);
            if self.call(call) {
                assert_eq!(answer, Ok(Some(call)));
            } else {
                let Err(Refused::Denied(denied)) = answer else { panic!("{answer:?}") };
                assert_eq!(denied.capability, call.capability());
            }
        }
    }

    fn enter(&mut self, pump: &mut Pump) {
        let answer = pump.enter(None);
        if self.dead {
            return assert!(matches!(answer, Enter::Trapped(_)));
        }
        if self.running {
            self.pending = true;
            let Enter::Deferred(deferred) = answer else { panic!("{answer:?}") };
            assert_eq!((deferred.turn, deferred.batch), (self.turn, self.batch));
        } else if let Some(call) = self.mailbox.pop() {
            let unseen = self.drained && self.watched == Some(false);
            if call != HostCall::Microtask || self.ended || unseen {
                self.turn += 1;
                self.new_turn();
            }
            self.batch += 1;
            self.running = true;
            self.refused |= self.taken >= BURST;
            (self.steps, self.paused, self.pending, self.unserved) = (0, false, false, false);
            assert_eq!(answer, Enter::Begin { turn: self.turn, batch: self.batch });
        } else {
            assert_eq!(answer, Enter::NotScheduled);
        }
    }

    fn step(&mut self, pump: &mut Pump) {
        self.refused |= self.running && self.taken >= BURST;
        let granted = self.running && !self.refused && !self.paused;
        if granted {
            self.steps += 1;
            self.taken += 1;
            (self.pending, self.unserved) = (false, false);
        }
        assert_eq!(pump.may_step(None), granted);
    }

    fn leave(&mut self, pump: &mut Pump, work: bool) {
        let answer = pump.leave(work);
        if self.dead {
            return assert!(matches!(answer, Leave::Trapped(_)));
        }
        if !self.running {
            return assert_eq!(answer, Leave::NotRunning);
        }
        self.running = false;
        self.drained = true;
        self.refused |= self.paused && self.taken >= BURST;
        if !work && !self.pending {
            assert!(!self.unserved, "the pump is idle despite a wake");
            return assert_eq!(answer, Leave::Idle);
        }
        let limit = self.refused.then_some(Limit::Steps);
        let resumes = self.paused && !self.refused;
        let wanted = if resumes { HostCall::Microtask } else { self.handoff };
        if self.call(wanted) {
            if resumes {
                assert_eq!(answer, Leave::Resume(HostCall::Microtask));
                self.unserved = true;
                return;
            }
            let Leave::Kick(kick) = answer else { panic!("{answer:?}") };
            assert_eq!((kick.call, kick.reached, kick.steps), (self.handoff, limit, self.steps));
        } else {
            let Leave::Stalled { denied, reached } = answer else { panic!("{answer:?}") };
            assert_eq!((denied.capability, reached), (wanted.capability(), limit));
        }
        // Work that is handed off counts like a wake: it must not be forgotten either.
        self.unserved = true;
    }

    fn new_turn(&mut self) {
        (self.taken, self.refused, self.drained) = (0, false, false);
        (self.ended, self.watched) = (false, None);
    }

    fn watch_turn(&mut self, pump: &mut Pump) {
        let answer = pump.watch_turn();
        if self.dead {
            return;
        }
        let asks = self.drained && self.watched != Some(true);
        assert_eq!(answer, (asks && self.post).then_some(self.handoff));
        if asks {
            self.watched = Some(self.post);
        }
    }

    fn end_turn(&mut self, pump: &mut Pump) {
        if self.running || self.dead {
            // Inside a drain it traps, which another test covers.
            return;
        }
        let ended = self.ended || self.drained;
        self.new_turn();
        self.ended = ended;
        assert_eq!(pump.end_turn(), Ok(()));
    }

    fn toggle(&mut self, pump: &mut Pump, capability: Capability, granted: bool) {
        if !granted {
            return pump.revoke(capability);
        }
        let answer = pump.grant(capability);
        let expected = self.owed.filter(|&call| self.call(call));
        assert_eq!(answer, expected);
    }

    fn agrees(&self, pump: &Pump) {
        assert_eq!(pump.check(), Ok(()));
        assert!(self.mailbox.len() <= 1, "two host calls outstanding");
        assert!(!self.running || self.mailbox.is_empty(), "a host call outstanding in a drain");
        assert_eq!(pump.outstanding(), self.mailbox.first().copied());
        assert_eq!(pump.state(), self.state());
        assert_eq!(pump.pending(), self.running && self.pending);
        assert_eq!(pump.stalled(), self.owed.is_some());
        assert_eq!(pump.steps(), if self.running { self.steps } else { 0 });
        assert!(self.taken <= BURST, "more steps in one turn than the limit");
        assert_eq!((pump.host_turn_id(), pump.microtask_batch_id()), (self.turn, self.batch));
        if self.unserved && !self.dead {
            let safe =
                self.running && self.pending || !self.mailbox.is_empty() || self.owed.is_some();
            assert!(safe, "a wake is lost: {self:?}");
        }
    }

    /// After any history, granting everything makes an unserved wake run a drain.
    fn recovers(mut self, mut pump: Pump) {
        if self.dead || !self.unserved {
            return;
        }
        if self.running {
            self.leave(&mut pump, false);
        }
        for op in [Op::TogglePost, Op::ToggleMicrotask] {
            if (op == Op::TogglePost && !self.post)
                || (op == Op::ToggleMicrotask && !self.microtask)
            {
                self.apply(&mut pump, op);
            }
        }
        assert_eq!(pump.state(), PumpState::Scheduled, "never resumed: {self:?}");
    }
}

/// Explores every sequence. An event without effect leads to sequences already explored.
fn explore(pump: &Pump, model: &Model, depth: usize, visited: &mut u64) {
    *visited += 1;
    model.agrees(pump);
    model.clone().recovers(pump.clone());
    if depth == 0 {
        return;
    }
    for op in OPS {
        let mut next_pump = pump.clone();
        let mut next_model = model.clone();
        next_model.apply(&mut next_pump, op);
        if model.dead {
            assert_eq!(next_pump.trapped(), pump.trapped(), "a trap is final");
        } else if (&next_pump, &next_model) != (pump, model) {
            explore(&next_pump, &next_model, depth - 1, visited);
        }
    }
}

fn config(has_message_channel: bool) -> PumpConfig {
    PumpConfig {
        microtask_burst_limit: BURST,
        burst_time_limit: None,
        has_message_channel,
        ..PumpConfig::default()
    }
}

#[test]
fn every_short_history_of_the_pump_follows_the_model() {
    let mut visited = 0;
    let pump = Pump::new(config(true), Capabilities::all());
    explore(&pump, &Model::new(HostCall::MessagePost), DEPTH, &mut visited);
    assert!(visited > 50_000, "the exploration is too small: {visited}");
}

#[test]
fn the_model_also_holds_without_messages() {
    let pump = Pump::new(config(false), Capabilities::all());
    explore(&pump, &Model::new(HostCall::TimeoutZero), DEPTH - 2, &mut 0);
}

const TIME_LIMIT: u64 = 9;

/// Runs one drain over polls of these lengths. Returns how many ran, and the limit that ended it.
fn drain(spacing: u32, polls: &[u64]) -> (usize, Option<Limit>) {
    let config = PumpConfig {
        microtask_burst_limit: 256,
        burst_time_limit: Some(Duration::from_nanos(TIME_LIMIT)),
        clock_check_every: spacing,
        ..PumpConfig::default()
    };
    let mut pump = Pump::new(config, Capabilities::all());
    let mut clock = 5;
    let mut ran = 0;
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
    assert!(matches!(pump.enter(Some(Time::from_nanos(clock))), Enter::Begin { .. }));
    while let Some(took) = polls.get(ran) {
        let now = pump.wants_clock().then(|| Time::from_nanos(clock));
        if !pump.may_step(now) {
            break;
        }
        assert_eq!(pump.check(), Ok(()));
        clock += took;
        ran += 1;
    }
    match pump.leave(true) {
        Leave::Kick(kick) => (ran, kick.reached),
        other => panic!("{other:?}"),
    }
}

/// Returns every sequence of seven polls with a few different lengths.
fn poll_lengths() -> impl Iterator<Item = [u64; 7]> {
    (0..4_usize.pow(7))
        .map(|n| std::array::from_fn(|i| [0, 1, 4, 9][n / 4_usize.pow(i as u32) % 4]))
}

/// Returns the number of polls begun after the time limit.
fn late(polls: &[u64; 7], ran: usize) -> usize {
    let in_time = (0..ran).filter(|&i| polls[..i].iter().sum::<u64>() < TIME_LIMIT).count();
    ran - in_time
}

#[test]
fn a_drain_begins_no_poll_late_if_it_reads_the_clock_each_time() {
    for polls in poll_lengths() {
        let (ran, reached) = drain(1, &polls);
        assert_eq!(late(&polls, ran), 0, "{polls:?}");
        let over = polls[..ran].iter().sum::<u64>() >= TIME_LIMIT;
        assert_eq!(reached, (ran < 7).then_some(Limit::Time), "{polls:?}");
        assert!(ran == 7 || over, "ended early: {polls:?}");
    }
}

#[test]
fn spaced_readings_are_late_only_if_polls_grow() {
    let mut some_late = false;
    for polls in poll_lengths() {
        for spacing in 2..=4 {
            let (ran, _) = drain(spacing, &polls);
            let late = late(&polls, ran);
            assert!(late < spacing as usize, "{polls:?}");
            let grows = polls.windows(2).any(|w| w[0] < w[1]);
            assert!(late == 0 || grows, "{polls:?}");
            some_late |= late > 0;
            let over = polls[..ran].iter().sum::<u64>() >= TIME_LIMIT;
            assert!(ran == 7 || over, "ended early: {polls:?}");
        }
    }
    assert!(some_late, "no drain is late, so the readings are not spaced");
}
