//! The [`Transport`] trait, which sockets and scripts for tests implement, and conversations over it.

use crate::message::{Flags, Message};
use crate::reply::Conversation;
pub use crate::reply::Report;
use crate::{Batch, Error};

/// Something that carries datagrams to the kernel and back.
///
/// ```
/// use sluicegate_netlink::{Error, Transport, Wait};
///
/// /// Counts what a socket sends.
/// struct Counting<T>(T, usize);
///
/// impl<T: Transport> Transport for Counting<T> {
///     fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
///         self.1 += datagram.len();
///         self.0.send(datagram)
///     }
///
///     fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
///         self.0.receive(buffer, wait)
///     }
///
///     fn send_limit(&mut self, size: usize) -> usize {
///         self.0.send_limit(size)
///     }
/// }
/// ```
pub trait Transport {
    /// Sends whole messages as one datagram.
    ///
    /// # Errors
    /// [`Error::TooBig`] when it does not fit the send buffer; nothing is sent then.
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error>;

    /// Reads one datagram into `buffer`, replacing its content. Returns false if there is none yet: with
    /// [`Wait::No`], or on a transport that never waits.
    ///
    /// # Errors
    /// [`Error::Overrun`] when the kernel could not queue messages, [`Error::Truncated`] when a datagram did
    /// not fit, [`Error::TimedOut`] when nothing came although [`Wait::Answer`] was asked for.
    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error>;

    /// Makes the send buffer large enough for `size` bytes if that is permitted, and returns how many bytes
    /// can be sent at once.
    fn send_limit(&mut self, size: usize) -> usize;

    /// Returns the port id of the socket, which is in the header of every answer to it. `None` if it is
    /// unknown: answers are then recognised by their sequence numbers alone, and on a socket that has joined
    /// a multicast group a notification of another program's change can be mistaken for one.
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

/// Sends batches, each as one datagram, and reads answers until the last message of the last batch is
/// answered.
///
/// That message must be one that is always answered: it asks for an acknowledgement ([`Flags::ACK`]) or is a
/// dump. Data goes to `on_data`. Requests that the kernel refused are in the report and are not an `Err`: the
/// caller decides which of them matter. After an overflow of the receive buffer, [`Report::lost`] is true and
/// the report contains the answers that could be read.
///
/// Answers that are still queued from an earlier, interrupted conversation are discarded first. Notifications
/// of changes by other programs ([`Transport::port`]) are ignored.
///
/// # Errors
/// When a datagram cannot be sent or read, no answer comes in time ([`Error::TimedOut`]), the transport does
/// not wait for one ([`Error::WouldBlock`]), or `on_data` fails.
pub fn exchange(
    transport: &mut (impl Transport + ?Sized),
    batches: &[&Batch],
    mut on_data: impl FnMut(Message<'_>) -> Result<(), Error>,
) -> Result<Report, Error> {
    if batches.is_empty() {
        return Ok(Report::default());
    }
    let (mut buffer, mut overruns) = (Vec::new(), 0);
    let mut talk = ask(transport, batches, &mut buffer)?;
    while hear(transport, &mut talk, &mut buffer, &mut overruns, &mut on_data)? {}
    Ok(talk.into_report())
}

/// Reads and discards the answers that are still queued: what a conversation that failed has left, such as
/// the rest of a dump. The kernel refuses another dump (`EBUSY`) until the first has been read to its end.
///
/// [`exchange`] and the functions above it do so by themselves.
pub fn discard(transport: &mut (impl Transport + ?Sized), buffer: &mut Vec<u8>) {
    for _ in 0..MOST_STALE {
        if !matches!(transport.receive(buffer, Wait::No), Ok(true) | Err(Error::Overrun)) {
            break;
        }
    }
}

/// Discards the answers that are still queued, and sends batches.
fn ask(
    transport: &mut (impl Transport + ?Sized),
    batches: &[&Batch],
    buffer: &mut Vec<u8>,
) -> Result<Conversation, Error> {
    discard(transport, buffer);
    let first = batches.first().map_or(0, |batch| batch.first_sequence());
    let next = batches.last().map_or(0, |batch| batch.next_sequence());
    let mut talk = Conversation::new(first, next.saturating_sub(1));
    talk.answers_to(transport.port());
    for batch in batches {
        transport.send(batch.bytes()?)?;
    }
    Ok(talk)
}

/// Reads one datagram. Returns false when the conversation is over.
fn hear(
    transport: &mut (impl Transport + ?Sized),
    talk: &mut Conversation,
    buffer: &mut Vec<u8>,
    overruns: &mut u32,
    on_data: &mut impl FnMut(Message<'_>) -> Result<(), Error>,
) -> Result<bool, Error> {
    if talk.is_finished() || *overruns >= MOST_OVERRUNS {
        return Ok(false);
    }
    // After a loss the awaited answer may be lost as well: read what is queued, and do not wait.
    let wait = if talk.has_lost() { Wait::No } else { Wait::Answer };
    match transport.receive(buffer, wait) {
        Ok(true) => {
            *overruns = 0;
            talk.datagram(buffer, on_data)?;
        }
        Ok(false) if talk.has_lost() => return Ok(false),
        Ok(false) => return Err(Error::WouldBlock),
        Err(Error::Overrun) => {
            *overruns += 1;
            talk.lost();
        }
        Err(error) => return Err(error),
    }
    Ok(true)
}

/// Requests a dump and returns the values that `decode` returns for its messages; `None` skips one.
///
/// Starts again, at most eight times, when the objects changed while they were read. `request` must be a
/// batch of one message with [`Flags::DUMP`].
///
/// # Errors
/// [`Error::Kernel`] when the kernel refuses, [`Error::Interrupted`] when the objects changed every time,
/// [`Error::Overrun`] when messages were lost, and whatever `decode` returns.
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

/// Requests a dump as [`dump`] does, and returns the list that `decode` appends to: for messages that contain
/// several objects each.
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

/// Requests a dump as [`dump_into`] does, but only once: for requests that change the objects that they read,
/// such as those that reset counters.
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

/// A dump that is read datagram by datagram, so that it needs no memory for the whole.
///
/// It does not keep the transport, so that its owner can ask again. Nothing has to be done when it is dropped
/// before its end: [`exchange`] reads the rest away before it asks for something else.
#[derive(Debug)]
pub struct Dumping {
    talk: Conversation,
    buffer: Vec<u8>,
    overruns: u32,
}

impl Dumping {
    /// Sends a batch of one message with [`Flags::DUMP`].
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn start(transport: &mut (impl Transport + ?Sized), request: &Batch) -> Result<Self, Error> {
        let mut buffer = Vec::new();
        let talk = ask(transport, &[request], &mut buffer)?;
        Ok(Self { talk, buffer, overruns: 0 })
    }

    /// Reads the next datagram and passes its messages to `on_data`. Returns false at the end of the dump.
    ///
    /// # Errors
    /// As [`dump`]. Unlike that, it cannot read again: [`Error::Interrupted`] at the end, when the objects
    /// changed while they were read.
    pub fn read(
        &mut self,
        transport: &mut (impl Transport + ?Sized),
        mut on_data: impl FnMut(Message<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if hear(transport, &mut self.talk, &mut self.buffer, &mut self.overruns, &mut on_data)? {
            return Ok(true);
        }
        let report = std::mem::replace(&mut self.talk, Conversation::new(0, 0)).into_report();
        if let Some(error) = report.errors.into_iter().next() {
            return Err(error.into());
        }
        if report.lost {
            return Err(Error::Overrun);
        }
        if report.interrupted { Err(Error::Interrupted(1)) } else { Ok(false) }
    }
}

/// Requests a dump once. Returns `None` if it was interrupted.
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
/// Queued answers that [`exchange`] drops before it asks. More are told from the new ones by their numbers.
const MOST_STALE: u32 = 1 << 16;
/// The number of `ENOBUFS` without a datagram in between after which a conversation is over. The kernel
/// reports an overflow once, so that one is to be expected.
pub const MOST_OVERRUNS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errno;
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

    /// A kernel whose receive buffer overflows at every read.
    struct Overflowing;

    impl Transport for Overflowing {
        fn send(&mut self, _: &[u8]) -> Result<(), Error> {
            Ok(())
        }

        fn receive(&mut self, _: &mut Vec<u8>, _: Wait) -> Result<bool, Error> {
            Err(Error::Overrun)
        }

        fn send_limit(&mut self, _: usize) -> usize {
            usize::MAX
        }
    }

    #[test]
    fn a_receive_buffer_that_always_overflows_ends_the_conversation() {
        assert!(exchange(&mut Overflowing, &[&request(Flags::ACK)], |_| Ok(())).unwrap().lost);
        assert!(matches!(dump(&mut Overflowing, &request(Flags::DUMP), first), Err(Error::Overrun)));
    }

    #[test]
    fn one_message_of_a_dump_may_contain_several_objects() {
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
    fn an_interrupted_dump_is_repeated_and_its_objects_are_discarded() {
        let batch = request(Flags::DUMP);
        let mut kernel = Script::new();
        kernel
            .expect(batch.bytes().unwrap())
            .reply([data(Flags::DUMP_INTR, 1), data(Flags::DUMP_INTR, 2), scripted::done(1)].concat());
        kernel.expect(batch.bytes().unwrap()).reply([data(Flags::empty(), 5), scripted::done(1)].concat());
        assert_eq!(dump(&mut kernel, &batch, first).unwrap(), [5]);
    }

    #[test]
    fn dump_once_does_not_repeat_an_interrupted_dump() {
        let batch = request(Flags::DUMP);
        let mut kernel = Script::new();
        kernel.expect(batch.bytes().unwrap()).reply([data(Flags::DUMP_INTR, 1), scripted::done(1)].concat());
        assert!(matches!(dump_once(&mut kernel, &batch, all), Err(Error::Interrupted(1))));
        kernel.finish();
    }

    #[test]
    fn a_dump_that_is_interrupted_each_time_is_an_error() {
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
    fn a_dump_with_lost_messages_is_an_error() {
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
    fn after_a_loss_queued_answers_are_still_read() {
        let batch = request(Flags::ACK);
        let mut kernel = Script::new();
        kernel.expect(batch.bytes().unwrap()).reply(scripted::error(1, Errno::ENOENT, None, None)).overrun();
        // The refusal answers the last message: the conversation ends there, before the loss is seen.
        let report = exchange(&mut kernel, &[&batch], |_| Ok(())).unwrap();
        assert_eq!((report.errors.len(), report.lost), (1, false));

        let mut kernel = Script::new();
        kernel.expect(batch.bytes().unwrap()).overrun().reply(scripted::error(1, Errno::ENOENT, None, None));
        let report = exchange(&mut kernel, &[&batch], |_| Ok(())).unwrap();
        assert_eq!((report.errors.len(), report.lost), (1, true));
    }

    /// A transport that never waits, as a non-blocking socket.
    struct NonBlocking(Script);

    impl Transport for NonBlocking {
        fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
            self.0.send(datagram)
        }

        fn receive(&mut self, buffer: &mut Vec<u8>, _: Wait) -> Result<bool, Error> {
            self.0.receive(buffer, Wait::No)
        }

        fn send_limit(&mut self, size: usize) -> usize {
            self.0.send_limit(size)
        }
    }

    #[test]
    fn an_answer_that_is_not_queued_on_a_transport_that_never_waits_is_an_error() {
        let batch = request(Flags::ACK);
        let mut kernel = NonBlocking(Script::new());
        kernel.0.expect(batch.bytes().unwrap());
        assert!(matches!(exchange(&mut kernel, &[&batch], |_| Ok(())), Err(Error::WouldBlock)));
        kernel.0.expect(batch.bytes().unwrap()).reply(scripted::ack(1));
        assert_eq!(exchange(&mut kernel, &[&batch], |_| Ok(())).unwrap(), Report::default());

        let dumped = request(Flags::DUMP);
        kernel.0.expect(dumped.bytes().unwrap()).reply(data(Flags::empty(), 1));
        assert!(matches!(dump(&mut kernel, &dumped, first), Err(Error::WouldBlock)));
    }

    #[test]
    fn stale_answers_are_dropped_before_a_conversation() {
        let batch = request(Flags::ACK);
        let mut kernel = Script::new();
        kernel.queued(scripted::error(1, Errno::EEXIST, None, None));
        kernel.expect(batch.bytes().unwrap()).reply(scripted::ack(1));
        assert_eq!(exchange(&mut kernel, &[&batch], |_| Ok(())).unwrap(), Report::default());
    }
}
