//! Tests of whole laws: every matrix enumerated, every structure compared with a naive model.

mod cancel_algebra;
mod channel_model;
mod lanes_model;
mod matrices;
mod pump_model;
mod timer_heap;
mod wheel_model;
mod world_exact;
mod world_random;
