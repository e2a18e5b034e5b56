//! Parts of a check that run beside each other, as many at a time as there are processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use crate::report::Outcome;

/// Makes each part, in their order, and returns the results as one. An error is a failure.
pub(crate) fn each<T: Sync>(parts: &[T], make: impl Fn(&T) -> Result<Outcome, String> + Sync) -> Outcome {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    each_in(parts, &vec![(); processors], |part, ()| make(part))
}

/// The same at so many places at a time, each of which makes one part after the other.
pub(crate) fn each_in<T: Sync, P: Sync>(
    parts: &[T],
    places: &[P],
    make: impl Fn(&T, &P) -> Result<Outcome, String> + Sync,
) -> Outcome {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for place in places {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(part) = parts.get(number) else { return };
                    let came = make(part, place).unwrap_or_else(Outcome::failed);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((number, came));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(number, _)| *number);
    let mut all = Outcome::default();
    outcomes.into_iter().for_each(|(_, came)| all.add(came));
    all
}

/// Makes each part with its index, in their order. Those that are so said are made beside what comes after them,
/// one after the other; `make` is told so.
pub(crate) fn in_order<T: Sync>(
    parts: &[T],
    is_beside: impl Fn(&T) -> bool,
    make: impl Fn(usize, &T, bool) + Sync,
) {
    thread::scope(|scope| {
        let (to_other, other) = mpsc::channel();
        let make = &make;
        scope.spawn(move || other.into_iter().for_each(|index: usize| make(index, &parts[index], true)));
        for (index, part) in parts.iter().enumerate() {
            if is_beside(part) && !parts[index + 1..].iter().all(&is_beside) {
                // The other end is there until this one has gone.
                let _ = to_other.send(index);
            } else {
                make(index, part, false);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn what_may_is_made_beside_what_comes_after_it() {
        let (made, second) = (Mutex::new(Vec::new()), Barrier::new(2));
        in_order(
            &["first", "beside 1", "beside 2", "second", "beside 3"],
            |part| part.starts_with("beside"),
            |index, part, is_beside| {
                // Neither of these ends without the other.
                if matches!(*part, "beside 1" | "second") {
                    second.wait();
                }
                made.lock().unwrap().push((index, *part, is_beside));
            },
        );
        let mut made = made.into_inner().unwrap();
        let places = ["beside 1", "beside 2"].map(|part| made.iter().position(|made| made.1 == part));
        assert!(places[0] < places[1]);
        assert_eq!(made[0], (0, "first", false));
        made.sort_unstable();
        let beside: Vec<_> = made.iter().map(|made| made.2).collect();
        assert_eq!(beside, [false, true, true, false, false]);
    }

    #[test]
    fn each_part_is_made_once_and_told_in_its_order() {
        let parts: Vec<_> = (0..40).collect();
        let made = AtomicUsize::new(0);
        let outcome = each_in(&parts, &[(); 4], |part, ()| {
            made.fetch_add(1, Ordering::Relaxed);
            if part % 10 == 9 { Err(part.to_string()) } else { Ok(Outcome::passed()) }
        });
        assert_eq!(made.into_inner(), 40);
        assert_eq!((outcome.passed, outcome.failures.join(" ").as_str()), (36, "9 19 29 39"));
        assert_eq!(each(&[0; 0], |_| Ok(Outcome::passed())), Outcome::default());
    }
}
