//! Work of one test that mostly waits for the kernel, on more threads than there are processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

/// Does the same with each item, on some threads, each at a place of its own, and returns the results in the
/// order of the items. Without a place there are none.
///
/// The threads are more than the processors, as they mostly wait: the kernel ends a transaction that it refuses, or
/// that takes something away, when every processor has passed a quiet moment (RCU), some 10 ms later. Those of
/// several namespaces wait for the same moment.
pub(crate) fn each<I: Sync, P, R: Send>(
    items: &[I],
    place: impl Fn() -> Option<P> + Sync,
    work: impl Fn(&P, &I) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let at_a_place = || {
        let Some(place) = place() else { return Vec::new() };
        let one = || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, work(&place, item)))
        };
        iter::from_fn(one).collect::<Vec<_>>()
    };
    let mut results = thread::scope(|scope| {
        let threads: Vec<_> = (0..items.len().min(THREADS)).map(|_| scope.spawn(at_a_place)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect::<Vec<_>>()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

const THREADS: usize = 6;
