//! Programs whose bug is known, and what makes them right.

use super::{Op, Program};
