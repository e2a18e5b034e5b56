//! What a socket and its stand-in for tests have in common, and whole conversations over either.

use crate::message::{Flags, Message};
use crate::reply::Conversation;
pub use crate::reply::Report;
use crate::{Batch, Error};

/// Something that carries datagrams to the kernel and back.
pub trait Transport {
    /// Sends whole messages as one datagram.
    ///
    /// # Errors
    /// [`Error::TooBig`] when it does not fit the send buffer; nothing is sent then.
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error>;

    /// Reads one datagram into `buffer`, replacing what it holds. False when there is none (yet).
    ///
    /// # Errors
    /// [`Error::Overrun`] when the kernel could not queue messages, [`Error::Truncated`] when a datagram did not fit,
    /// [`Error::TimedOut`] when nothing came although [`Wait::Answer`] was asked for.
    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error>;

    /// Makes the send buffer large enough for `size` bytes if that is permitted, and says how much can be sent at once.
    fn send_limit(&mut self, size: usize) -> usize;

    /// The port id of the socket, which is in the header of every answer to it. `None` where it is not known: then answers are known by
    /// their sequence numbers alone, and on a socket that has joined a group the notification of another's change may pass for one.
    fn port(&self) -> Option<u32> {
        None
    }
}

/// How long [`Transport::receive`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until something comes or the transport's time limit has passed.
    Answer,
}

impl<T: Transport + ?Sized> Transport for &mut T {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        (**self).send(datagram)
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        (**self).receive(buffer, wait)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        (**self).send_limit(size)
    }

    fn port(&self) -> Option<u32> {
        (**self).port()
    }
}

/// Sends batches, each as one datagram, and reads answers until the last message of the last batch is answered.
///
/// That message must be one that is always answered: it asks for an acknowledgement ([`Flags::ACK`]) or is a dump. Data
/// goes to `on_data`. The kernel's refusals are in the report, not an `Err`: which of them matter is the caller's
/// business. After a full receive buffer the report says `lost` and holds what could be read.
///
/// Answers that are still queued from an earlier, broken-off conversation are dropped first. What comes meanwhile and is not for
/// this socket ([`Transport::port`]) is passed over: notifications of what others do.
///
/// # Errors
/// When a datagram cannot be sent or read, no answer comes in time, or `on_data` fails.
pub fn exchange(
    transport: &mut (impl Transport + ?Sized),
    batches: &[&Batch],
    mut on_data: impl FnMut(Message<'_>) -> Result<(), Error>,
) -> Result<Report, Error> {
    let (Some(first), Some(last)) = (batches.first(), batches.last()) else {
        return Ok(Report::default());
    };
    let mut buffer = Vec::new();
    while matches!(transport.receive(&mut buffer, Wait::No), Ok(true) | Err(Error::Overrun)) {}
    let mut talk = Conversation::new(first.first_sequence(), last.next_sequence().saturating_sub(1));
    talk.answers_to(transport.port());
    for batch in batches {
        transport.send(batch.bytes()?)?;
    }
    while !talk.is_finished() {
        // After a loss the awaited answer may be among what is lost: take what is there, wait for nothing.
        let wait = if talk.has_lost() { Wait::No } else { Wait::Answer };
        match transport.receive(&mut buffer, wait) {
            Ok(true) => talk.datagram(&buffer, &mut on_data)?,
            Ok(false) => break,
            Err(Error::Overrun) => talk.lost(),
            Err(error) => return Err(error),
        }
    }
    Ok(talk.into_report())
}

/// Asks for a dump and returns what `decode` makes of each message (`None` leaves one out).
///
/// Starts again, at most eight times, when the objects changed while they were read. `request` must be a batch of one
/// message with [`Flags::DUMP`].
///
/// # Errors
/// [`Error::Kernel`] when the kernel refuses, [`Error::Interrupted`] when it never settles, [`Error::Overrun`] when
/// messages were lost, and whatever `decode` returns.
pub fn dump<T>(
    transport: &mut (impl Transport + ?Sized),
    request: &Batch,
    mut decode: impl FnMut(Message<'_>) -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Error> {
    dump_into(transport, request, |message, found| {
        found.extend(decode(message)?);
        Ok(())
    })
}

/// Asks for a dump as [`dump`] does, and returns what `decode` adds to a list: for messages that hold several objects each.
///
/// # Errors
/// As [`dump`].
pub fn dump_into<T>(
    transport: &mut (impl Transport + ?Sized),
    request: &Batch,
    mut decode: impl FnMut(Message<'_>, &mut Vec<T>) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    for _ in 0..DUMP_TRIES {
        if let Some(found) = attempt(transport, request, &mut decode)? {
            return Ok(found);
        }
    }
    Err(Error::Interrupted(DUMP_TRIES))
}

/// Asks for a dump as [`dump_into`] does, and never again: for requests that change what they read, as those that reset counters.
///
/// # Errors
/// As [`dump`]; [`Error::Interrupted`] when the objects changed while they were read.
pub fn dump_once<T>(
    transport: &mut (impl Transport + ?Sized),
    request: &Batch,
    mut decode: impl FnMut(Message<'_>, &mut Vec<T>) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    attempt(transport, request, &mut decode)?.ok_or(Error::Interrupted(1))
}

/// One dump; `None` when it was interrupted.
fn attempt<T>(
    transport: &mut (impl Transport + ?Sized),
    request: &Batch,
    decode: &mut impl FnMut(Message<'_>, &mut Vec<T>) -> Result<(), Error>,
) -> Result<Option<Vec<T>>, Error> {
    debug_assert!(request.find(request.first_sequence()).is_some_and(|(h, _)| h.flags.contains(Flags::DUMP)));
    let mut found = Vec::new();
    let report = exchange(transport, &[request], |message| decode(message, &mut found))?;
    if let Some(error) = report.errors.into_iter().next() {
        return Err(error.into());
    }
    if report.lost {
        return Err(Error::Overrun);
    }
    Ok((!report.interrupted).then_some(found))
}

const DUMP_TRIES: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Header, encode};
    use crate::scripted::{self, Script};

    fn request(flags: Flags) -> Batch {
        let mut batch = Batch::new();
        drop(batch.message(1, flags | Flags::REQUEST, 0));
        batch
    }

    fn data(flags: Flags, value: u8) -> Vec<u8> {
        encode(Header { kind: 99, flags: flags | Flags::MULTI, sequence: 1, port: 0 }, &[value; 4])
    }

    fn first(message: Message<'_>) -> Result<Option<u8>, Error> {
        Ok(message.payload.first().copied())
    }

    fn all(message: Message<'_>, found: &mut Vec<u8>) -> Result<(), Error> {
        found.extend(message.payload);
        Ok(())
    }

    #[test]
    fn what_one_message_of_a_dump_holds_may_be_several_objects() {
        let batch = request(Flags::DUMP);
        let mut kernel = Script::new();
        kernel
            .expect(batch.bytes().unwrap())
            .reply([data(Flags::empty(), 1), data(Flags::empty(), 2), scripted::done(1)].concat());
        assert_eq!(dump_into(&mut kernel, &batch, all).unwrap(), [1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn a_dump_over_several_datagrams_is_read_whole() {
        let batch = request(Flags::DUMP);
        let mut kernel = Script::new();
        kernel
            .expect(batch.bytes().unwrap())
            .reply([data(Flags::empty(), 1), data(Flags::empty(), 2)].concat())
            .reply([data(Flags::empty(), 3), scripted::done(1)].concat());
        assert_eq!(dump(&mut kernel, &batch, first).unwrap(), [1, 2, 3]);
        kernel.finish();
    }

    #[test]
    fn an_interrupted_dump_starts_again_and_leaves_nothing_of_the_first() {
        let batch = request(Flags::DUMP);
        let mut kernel = Script::new();
        kernel
            .expect(batch.bytes().unwrap())
            .reply([data(Flags::DUMP_INTR, 1), data(Flags::DUMP_INTR, 2), scripted::done(1)].concat());
        kernel.expect(batch.bytes().unwrap()).reply([data(Flags::empty(), 5), scripted::done(1)].concat());
        assert_eq!(dump(&mut kernel, &batch, first).unwrap(), [5]);
    }

    #[test]
    fn a_dump_that_may_not_be_repeated_is_not() {
        let batch = request(Flags::DUMP);
        let mut kernel = Script::new();
        kernel.expect(batch.bytes().unwrap()).reply([data(Flags::DUMP_INTR, 1), scripted::done(1)].concat());
        assert!(matches!(dump_once(&mut kernel, &batch, all), Err(Error::Interrupted(1))));
        kernel.finish();
    }

    #[test]
    fn a_dump_that_never_settles_is_an_error() {
        let batch = request(Flags::DUMP);
        let mut kernel = Script::new();
        for _ in 0..DUMP_TRIES {
            kernel
                .expect(batch.bytes().unwrap())
                .reply([data(Flags::DUMP_INTR, 1), scripted::done(1)].concat());
        }
        assert!(matches!(dump(&mut kernel, &batch, first), Err(Error::Interrupted(8))));
    }

    #[test]
    fn a_dump_with_lost_messages_is_not_taken_as_the_whole() {
        let batch = request(Flags::DUMP);
        let mut kernel = Script::new();
        kernel
            .expect(batch.bytes().unwrap())
            .reply(data(Flags::empty(), 1))
            .overrun()
            .reply(scripted::done(1));
        assert!(matches!(dump(&mut kernel, &batch, first), Err(Error::Overrun)));
    }

    #[test]
    fn after_a_loss_what_is_queued_is_still_read() {
        let batch = request(Flags::ACK);
        let mut kernel = Script::new();
        kernel.expect(batch.bytes().unwrap()).reply(scripted::error(1, 2, None, None)).overrun();
        // The refusal answers the last message: the conversation ends there, before the loss is seen.
        let report = exchange(&mut kernel, &[&batch], |_| Ok(())).unwrap();
        assert_eq!((report.errors.len(), report.lost), (1, false));

        let mut kernel = Script::new();
        kernel.expect(batch.bytes().unwrap()).overrun().reply(scripted::error(1, 2, None, None));
        let report = exchange(&mut kernel, &[&batch], |_| Ok(())).unwrap();
        assert_eq!((report.errors.len(), report.lost), (1, true));
    }

    #[test]
    fn stale_answers_are_dropped_before_a_conversation() {
        let batch = request(Flags::ACK);
        let mut kernel = Script::new();
        kernel.queued(scripted::error(1, 17, None, None));
        kernel.expect(batch.bytes().unwrap()).reply(scripted::ack(1));
        assert_eq!(exchange(&mut kernel, &[&batch], |_| Ok(())).unwrap(), Report::default());
    }
}
