//! How the world of a scenario is set up.

use crate::parse::words::{self, Word};
use asx_kernel::cancel::ChainLimits;
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::TieBreak;
use asx_kernel::pump::{Capabilities, Capability, PumpConfig};
use asx_kernel::wheel::{Coalesce, WheelConfig};
use asx_kernel::world::Limits;
use core::time::Duration;
use serde::Deserialize;

/// The `[config]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename = "[config]", default)]
pub struct Settings {
    /// Virtual workers.
    #[serde(deserialize_with = "words::within::<_, _, 1, 64>")]
    pub workers: usize,
    /// How equals are ordered.
    pub tie_break: Word<TieBreak>,
    /// The fairness bound.
    #[serde(deserialize_with = "words::within::<_, _, 1, 4294967295>")]
    pub cancel_streak_limit: u32,
    /// How many causes a chain keeps.
    pub chain_depth: usize,
    /// How many bytes a chain keeps.
    pub chain_bytes: usize,
    /// Events retained.
    pub journal_capacity: usize,
    /// What happens beyond that.
    #[serde(rename = "journal_when_full")]
    pub when_full: Word<WhenFull>,
    /// LimitKeys.
    pub limits: LimitKeys,
    /// Timers.
    pub timers: Timers,
    /// The browser's pump, if it drives.
    pub browser: Option<Browser>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: 1,
            tie_break: Word(TieBreak::Fifo),
            cancel_streak_limit: 16,
            chain_depth: 16,
            chain_bytes: 4096,
            journal_capacity: 1_000_000,
            when_full: Word(WhenFull::Overwrite),
            limits: LimitKeys::default(),
            timers: Timers::default(),
            browser: None,
        }
    }
}

impl Settings {
    /// The bounds of a cause chain.
    pub(crate) fn chain_limits(&self) -> ChainLimits {
        ChainLimits { depth: self.chain_depth, bytes: self.chain_bytes }
    }
}

/// The `[config.limits]` table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename = "[config.limits]", default)]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub struct LimitKeys {
    pub tasks: Option<usize>,
    pub regions: Option<usize>,
    pub obligations: Option<usize>,
    pub channels: Option<usize>,
    pub ready_queue: Option<usize>,
    pub cancel_queue: Option<usize>,
    pub timed_queue: Option<usize>,
    pub memory: Option<usize>,
}

impl LimitKeys {
    /// The limits of a host that keeps the kernel's.
    pub(crate) fn of_kernel(&self) -> Limits {
        let none = Limits::default();
        Limits {
            tasks: self.tasks.unwrap_or(none.tasks),
            regions: self.regions.unwrap_or(none.regions),
            obligations: self.obligations.unwrap_or(none.obligations),
            channels: self.channels.unwrap_or(none.channels),
            ready_queue: self.ready_queue.unwrap_or(none.ready_queue),
            timed_queue: self.timed_queue.unwrap_or(none.timed_queue),
            cancel_queue: self.cancel_queue.unwrap_or(none.cancel_queue),
            memory: self.memory.unwrap_or(none.memory),
        }
    }
}

/// The `[config.timers]` table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename = "[config.timers]", default)]
pub struct Timers {
    /// Beyond it, the overflow heap.
    pub max_wheel_duration: Option<Duration>,
    /// Beyond it, refused.
    pub max_timer_duration: Option<Duration>,
    /// Live timers.
    pub limit: Option<usize>,
    /// Timers so near each other may be fired together.
    pub coalesce_window: Option<Duration>,
    /// If they are at least so many.
    pub coalesce_min: Option<usize>,
    /// The first id.
    pub first_id: Option<u64>,
    /// The first generation.
    pub first_generation: Option<u64>,
}

impl Timers {
    /// How timers are fired together.
    pub(crate) fn coalesce(&self) -> Option<Coalesce> {
        let window = self.coalesce_window?;
        Some(Coalesce { window, min_group_size: self.coalesce_min.unwrap_or(1) })
    }

    /// The settings of the kernel's timing wheel.
    pub(crate) fn wheel(&self) -> WheelConfig {
        let wheel = WheelConfig::default();
        WheelConfig {
            max_wheel_duration: self.max_wheel_duration.unwrap_or(wheel.max_wheel_duration),
            max_timer_duration: self.max_timer_duration.unwrap_or(wheel.max_timer_duration),
            limit: self.limit.unwrap_or(wheel.limit),
            coalesce: self.coalesce(),
            first_id: self.first_id.unwrap_or(wheel.first_id),
            first_generation: self.first_generation.unwrap_or(wheel.first_generation),
        }
    }
}

/// The `[config.browser]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename = "[config.browser]", default)]
pub struct Browser {
    /// Whether hosts without an event loop skip the scenario; if not, they run it without a pump.
    pub required: bool,
    /// Steps per host turn.
    #[serde(deserialize_with = "words::within::<_, _, 1, 4294967295>")]
    pub burst_limit: u32,
    /// Time per host turn.
    pub burst_time: Option<Duration>,
    /// Timers per host turn.
    pub timer_batch: usize,
    /// Whether messages can be posted.
    pub message_channel: bool,
    /// What is granted.
    pub capabilities: Vec<Word<Capability>>,
}

impl Default for Browser {
    fn default() -> Browser {
        Browser {
            required: true,
            burst_limit: 256,
            burst_time: None,
            timer_batch: 64,
            message_channel: true,
            capabilities: Capability::ALL.map(Word).to_vec(),
        }
    }
}

impl Browser {
    /// The settings of the kernel's pump.
    pub(crate) fn pump(&self) -> PumpConfig {
        PumpConfig {
            microtask_burst_limit: self.burst_limit,
            burst_time_limit: self.burst_time,
            timer_batch_limit: self.timer_batch,
            has_message_channel: self.message_channel,
            clock_check_every: 1,
        }
    }

    /// What is granted in the beginning.
    pub(crate) fn granted(&self) -> Capabilities {
        let mut granted = Capabilities::none();
        self.capabilities.iter().for_each(|capability| granted.grant(capability.0));
        granted
    }
}
