//! The audit of a build without one: nothing.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Owner, RegionRefOwner};
use crate::raw::{Blueprint, Header, Word};

/// Whose a reference is.
#[derive(Clone, Copy)]
pub(crate) struct Tag;

impl Tag {
    #[inline(always)]
    pub(crate) fn new(_: Owner) -> Tag {
        Tag
    }

    #[inline(always)]
    pub(crate) fn of_clone(self) -> Owner {
        Owner::Call
    }

    #[inline(always)]
    pub(crate) fn owner(self) -> Owner {
        Owner::Call
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, _: Owner) {}
}

/// The books of a task.
pub(crate) struct Books;

impl Books {
    #[inline(always)]
    pub(crate) fn open<F>(_: &Blueprint, _: NonNull<Header>, _: PhantomData<F>) -> Books {
        Books
    }

    #[inline(always)]
    pub(crate) fn enter(&self, _: &Word, _: Owner, _: u32) {}

    #[inline(always)]
    pub(crate) fn strike(&self, _: &Word, _: Owner) {}

    #[inline(always)]
    pub(crate) fn shift(&self, _: Owner, _: Owner) {}

    #[inline(always)]
    pub(crate) fn end_poll(&self, _: &Word, _: u32) {}

    #[inline(always)]
    pub(crate) fn check_alive(&self) {}

    #[inline(always)]
    pub(crate) fn close(&self, _: &Word) {}
}

/// The tasks on a region's list.
pub(crate) struct Members;

impl Members {
    #[inline(always)]
    pub(crate) fn open() -> Members {
        Members
    }

    #[inline(always)]
    pub(crate) fn joins(&mut self, _: &Header, _: u64) {}

    #[inline(always)]
    pub(crate) fn leaves(&mut self, _: &Header) {}
}

/// The books of a region's references.
pub(crate) struct HomeBooks;

impl HomeBooks {
    #[inline(always)]
    pub(crate) fn open(_: u64) -> HomeBooks {
        HomeBooks
    }

    #[inline(always)]
    pub(crate) fn enter(&self, _: impl FnOnce() -> usize, _: RegionRefOwner, _: u32) {}

    #[inline(always)]
    pub(crate) fn strike(&self, _: impl FnOnce() -> usize, _: RegionRefOwner, _: u32) {}

    #[inline(always)]
    pub(crate) fn shift(&self, _: RegionRefOwner, _: RegionRefOwner) {}
}

/// Whether something in an `Arc` lives.
pub(crate) struct Seal<T>(PhantomData<fn() -> T>);

impl<T> Seal<T> {
    #[inline(always)]
    pub(crate) fn open() -> Seal<T> {
        Seal(PhantomData)
    }

    #[inline(always)]
    pub(crate) fn set(&self, _: &Arc<T>, _: &str, _: u64, _: &Registry) {}

    #[inline(always)]
    pub(crate) fn check_alive(&self) {}
}

/// The tasks of a core.
#[derive(Clone)]
pub(crate) struct Registry;

impl Registry {
    #[inline(always)]
    pub(crate) fn open() -> Registry {
        Registry
    }

    #[cfg(not(any(loom, target_family = "wasm")))]
    #[inline(always)]
    pub(crate) fn close(&self) {}
}
