//! Timeouts that nothing heeds: a body that goes on after its time without looking is reported.
//!
//! Not in a page: there bytes count, and nobody would be told.

#[cfg(target_family = "wasm")]
pub(super) use off::Lateness;
#[cfg(not(target_family = "wasm"))]
pub(super) use on::Lateness;

#[cfg(not(target_family = "wasm"))]
mod on {
    use std::panic::Location;
    use std::task::Waker;
    use std::time::Duration;

    use crate::Cx;
    use crate::shield::Patience;
    use crate::time::timer::Timer;

    /// For how long a body may go on.
    const UNHEEDED: Duration = Duration::from_secs(1);

    /// What is known of a timeout at this place.
    pub(crate) struct Lateness<'a> {
        at: &'static Location<'static>,
        state: State<'a>,
    }

    enum State<'a> {
        InTime,
        /// Its time is up, and nothing has looked yet.
        Late(Box<Patience<'a>>),
        Reported,
    }

    impl<'a> Lateness<'a> {
        pub(crate) fn new(at: &'static Location<'static>) -> Lateness<'a> {
            Lateness { at, state: State::InTime }
        }

        /// The body waits, its time is up, and nothing in it has looked.
        pub(crate) fn look(&mut self, timer: &Timer<&'a Cx>, waker: &Waker) {
            match &mut self.state {
                State::InTime => {
                    let cx = timer.cx();
                    self.state = State::Late(Patience::new(cx, cx.now() + UNHEEDED, waker));
                }
                State::Late(patience) => {
                    if patience.is_over(waker) {
                        self.report(timer);
                    }
                }
                State::Reported => {}
            }
        }

        /// The body has ended, and nothing in it has looked.
        pub(crate) fn end(&mut self, timer: &Timer<&'a Cx>) {
            let is_new = !matches!(self.state, State::Reported);
            if is_new && timer.deadline() + UNHEEDED <= timer.cx().now() {
                self.report(timer);
            }
        }

        fn report(&mut self, timer: &Timer<&'a Cx>) {
            self.state = State::Reported;
            let cx = timer.cx();
            cx.core().unheeded_timeout(cx.task(), self.at);
        }
    }
}

#[cfg(target_family = "wasm")]
mod off {
    use std::marker::PhantomData;
    use std::panic::Location;
    use std::task::Waker;

    use crate::Cx;
    use crate::time::timer::Timer;

    pub(crate) struct Lateness<'a>(PhantomData<&'a ()>);

    impl<'a> Lateness<'a> {
        pub(crate) fn new(_: &'static Location<'static>) -> Lateness<'a> {
            Lateness(PhantomData)
        }

        pub(crate) fn look(&mut self, _: &Timer<&'a Cx>, _: &Waker) {}

        pub(crate) fn end(&mut self, _: &Timer<&'a Cx>) {}
    }
}
