//! Shapes that several locks share.

/// A function that is `const`, except under loom, whose primitives have no `const` constructors.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $($rest)*

        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $($rest)*
    };
}

/// Cancel-safe futures that wait for permits and make a guard of them: the home they hold on to,
/// what they yield, and how a refusal becomes their error.
macro_rules! claims {
    ($(
        $(#[$meta:meta])*
        $name:ident<$($life:lifetime)?; $($T:ident)?>($home:ty) -> Result<$out:ty, $error:ty>
            = $refuse:path;
    )*) => {$(
        $(#[$meta])*
        #[must_use = "futures do nothing unless awaited"]
        pub struct $name<$($life,)? 'c, $($T: ?Sized)?>(
            $crate::sync::claim::Claim<&'c asx_task::Cx, $home>,
        );

        impl<$($life,)? 'c, $($T: ?Sized)?> Future for $name<$($life,)? 'c, $($T)?> {
            type Output = Result<$out, $error>;

            #[inline]
            fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
                Pin::new(&mut self.0).poll(task).map_ok(<$out>::new).map_err($refuse)
            }
        }

        impl<$($life,)? 'c, $($T: ?Sized)?> CancelSafe for $name<$($life,)? 'c, $($T)?> {}

        impl<$($life,)? 'c, $($T: ?Sized)?> fmt::Debug for $name<$($life,)? 'c, $($T)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0).finish()
            }
        }
    )*};
}

/// Guards of a value: the home they hold on to, and whether they are its `Sole` or a `Part`.
macro_rules! guards {
    ($(
        $(#[$meta:meta])*
        $name:ident<$($life:lifetime)?; T> = $kind:ident<$home:ty>;
    )*) => {$(
        $(#[$meta])*
        #[must_use = "the lock is released when its guard is dropped"]
        pub struct $name<$($life,)? T: ?Sized>($kind<$home>);

        impl<$($life,)? T: ?Sized> $name<$($life,)? T> {
            fn new(held: Held<$home>) -> Self {
                $name($kind::new(held))
            }
        }

        impl<$($life,)? T: ?Sized> Deref for $name<$($life,)? T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }

        guards!(@mutable $kind $name<$($life)?>);

        impl<$($life,)? T: ?Sized + fmt::Debug> fmt::Debug for $name<$($life,)? T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<$($life,)? T: ?Sized + fmt::Display> fmt::Display for $name<$($life,)? T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )*};

    (@mutable Part $name:ident<$($life:lifetime)?>) => {};
    (@mutable Sole $name:ident<$($life:lifetime)?>) => {
        impl<$($life,)? T: ?Sized> DerefMut for $name<$($life,)? T> {
            fn deref_mut(&mut self) -> &mut T {
                &mut self.0
            }
        }
    };
}

/// Guards of a part of a locked value: what they hold, and the guards they are made of.
///
/// The guard after `of` is the one that `map` is called with; the closure behind it makes what the
/// mapped guard keeps of the way to its lock.
macro_rules! mapped_guards {
    ($(
        $(#[$meta:meta])*
        $name:ident<$($life:lifetime)?; $($T:ident)?; U> = $kind:ident<$home:ty>
            of $guard:ident(& $($mut:ident)?), $rehome:expr;
    )*) => {$(
        $(#[$meta])*
        #[must_use = "the lock is released when its guard is dropped"]
        pub struct $name<$($life,)? $($T: ?Sized,)? U: ?Sized>($kind<$home, U>);

        impl<$($life,)? T: ?Sized> $guard<$($life,)? T> {
            /// A guard of a part of the value, which `of` leads to. If it panics, the lock is
            /// released.
            ///
            /// Not a method, so that it hides none of the value's.
            pub fn map<U: ?Sized>(
                this: Self,
                of: impl FnOnce(&$($mut)? T) -> &$($mut)? U,
            ) -> mapped_guards!(@name $name $($life)? $($T)?) {
                match $guard::filter_map(this, |value| Some(of(value))) {
                    Ok(mapped) => mapped,
                    Err(_) => unreachable!("there is a part always"),
                }
            }

            /// [`map`](Self::map), if there is such a part; else the guard as it was.
            pub fn filter_map<U: ?Sized>(
                this: Self,
                of: impl FnOnce(&$($mut)? T) -> Option<&$($mut)? U>,
            ) -> Result<mapped_guards!(@name $name $($life)? $($T)?), Self> {
                let mapped = this.0.filter_map(of).map_err($guard)?;
                Ok($name(mapped.rehome($rehome)))
            }
        }

        impl<$($life,)? $($T: ?Sized,)? U: ?Sized> $name<$($life,)? $($T,)? U> {
            /// A guard of a part of the part, which `of` leads to.
            pub fn map<V: ?Sized>(
                this: Self,
                of: impl FnOnce(&$($mut)? U) -> &$($mut)? V,
            ) -> $name<$($life,)? $($T,)? V> {
                match $name::filter_map(this, |value| Some(of(value))) {
                    Ok(mapped) => mapped,
                    Err(_) => unreachable!("there is a part always"),
                }
            }

            /// [`map`](Self::map), if there is such a part; else the guard as it was.
            pub fn filter_map<V: ?Sized>(
                this: Self,
                of: impl FnOnce(&$($mut)? U) -> Option<&$($mut)? V>,
            ) -> Result<$name<$($life,)? $($T,)? V>, Self> {
                this.0.filter_map(of).map($name).map_err($name)
            }
        }

        impl<$($life,)? $($T: ?Sized,)? U: ?Sized> Deref for $name<$($life,)? $($T,)? U> {
            type Target = U;

            fn deref(&self) -> &U {
                &self.0
            }
        }

        mapped_guards!(@mutable $kind $name<$($life)?; $($T)?>);

        impl<$($life,)? $($T: ?Sized,)? U: ?Sized + fmt::Debug> fmt::Debug
            for $name<$($life,)? $($T,)? U>
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<$($life,)? $($T: ?Sized,)? U: ?Sized + fmt::Display> fmt::Display
            for $name<$($life,)? $($T,)? U>
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )*};

    (@name $name:ident $life:lifetime) => { $name<$life, U> };
    (@name $name:ident $T:ident) => { $name<$T, U> };

    (@mutable MappedPart $name:ident<$($life:lifetime)?; $($T:ident)?>) => {};
    (@mutable MappedSole $name:ident<$($life:lifetime)?; $($T:ident)?>) => {
        impl<$($life,)? $($T: ?Sized,)? U: ?Sized> DerefMut for $name<$($life,)? $($T,)? U> {
            fn deref_mut(&mut self) -> &mut U {
                &mut self.0
            }
        }
    };
}
