//! Many messages in one buffer, sent as one datagram; errors are traced back to the caller's objects.

use std::ops::{Deref, DerefMut};

use crate::attr::{Tag, Writer};
use crate::message::{
    Flags, HEADER, Header, Messages, NFNL_BATCH_GENID, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NfGenMsg,
};
use crate::{KernelError, TooLong};

/// Messages in the order in which the kernel processes them, with consecutive sequence numbers.
///
/// A batch can be sent several times. Every message is tagged with a number of the caller's (such as an index
/// into its list of operations), and any attribute can be tagged as well ([`Writer::tag`]).
///
/// ```
/// use sluicegate_netlink::{Batch, message::Flags};
///
/// let mut batch = Batch::new();
/// let mut message = batch.message(0x0a03, Flags::REQUEST | Flags::ACK, 7);
/// message.put_str(1, "inner");
/// drop(message); // writes its length
/// assert_eq!(batch.bytes()?.len(), 16 + 12);
/// # Ok::<(), sluicegate_netlink::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    tags: Vec<Tag>,
    /// The offset of each message in `bytes`.
    starts: Vec<usize>,
    too_long: Option<TooLong>,
    first: u32,
}

impl Batch {
    /// Returns an empty batch whose messages are numbered from 1.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(1)
    }

    /// Returns an empty batch whose messages are numbered from `first`: for a batch that is sent together
    /// with another, or after one whose answers may still arrive.
    #[must_use]
    pub fn starting_at(first: u32) -> Self {
        Self { first, ..Self::default() }
    }

    /// Empties the batch but keeps its memory, and numbers messages from `first` on.
    pub fn restart(&mut self, first: u32) {
        self.bytes.clear();
        self.tags.clear();
        self.starts.clear();
        self.too_long = None;
        self.first = first;
    }

    /// Reserves memory for `bytes` more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Opens a message. Attributes that are written to the guard are its payload; dropping the guard closes
    /// it.
    ///
    /// [`object`](Self::object) returns `object` for an error of this message.
    #[inline]
    pub fn message(&mut self, kind: u16, flags: Flags, object: u64) -> MessageWriter<'_> {
        let start = self.bytes.len();
        let sequence = self.next_sequence();
        self.starts.push(start);
        let mut header = [0; HEADER];
        header[4..6].copy_from_slice(&kind.to_ne_bytes());
        header[6..8].copy_from_slice(&flags.bits().to_ne_bytes());
        header[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&header);
        self.tags.push(Tag { sequence, offset: 0, stride: 0, object });
        MessageWriter(Writer {
            bytes: &mut self.bytes,
            tags: &mut self.tags,
            too_long: &mut self.too_long,
            start,
            sequence,
        })
    }

    /// Opens a message of a netfilter subsystem: [`message`](Self::message) with `nfgenmsg` written.
    ///
    /// The `res_id` of `nfgenmsg` is 0.
    #[inline]
    pub fn netfilter(
        &mut self,
        subsystem: u8,
        command: u8,
        flags: Flags,
        family: u8,
        object: u64,
    ) -> MessageWriter<'_> {
        let kind = u16::from_be_bytes([subsystem, command]);
        let mut message = self.message(kind, flags | Flags::REQUEST, object);
        message.raw(&NfGenMsg { family, version: 0, resource: 0 }.bytes());
        message
    }

    /// Opens a netfilter transaction: the messages up to [`commit`](Self::commit) are applied as a whole or
    /// not at all.
    ///
    /// With a generation, the kernel refuses the transaction with `ERESTART` unless that is the current one.
    pub fn begin(&mut self, subsystem: u8, generation: Option<u32>, object: u64) {
        let mut message = self.frame(NFNL_MSG_BATCH_BEGIN, Flags::REQUEST, subsystem, object);
        if let Some(generation) = generation {
            message.put_be32(NFNL_BATCH_GENID, generation);
        }
    }

    /// Closes a netfilter transaction. Without this the kernel only checks the messages and applies nothing.
    pub fn commit(&mut self, subsystem: u8, object: u64) {
        self.frame(NFNL_MSG_BATCH_END, Flags::REQUEST, subsystem, object);
    }

    /// Returns the datagram.
    ///
    /// # Errors
    /// The first length that did not fit its field; such a batch is never sent.
    pub fn bytes(&self) -> Result<&[u8], TooLong> {
        match self.too_long {
            None => Ok(&self.bytes),
            Some(error) => Err(error),
        }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the batch has no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn messages(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// Returns the first message's sequence number.
    #[must_use]
    pub fn first_sequence(&self) -> u32 {
        self.first
    }

    /// Returns the sequence number that the next message gets.
    #[must_use]
    pub fn next_sequence(&self) -> u32 {
        self.first + self.messages()
    }

    /// Returns the caller's object that an error is about: that of the last tagged attribute at or before the
    /// error's offset, or else that of the message. `None` if the error is not for a message of this batch.
    #[must_use]
    pub fn object(&self, error: &KernelError) -> Option<u64> {
        let offset = error.offset.unwrap_or(0);
        let after = self.tags.partition_point(|tag| (tag.sequence, tag.offset) <= (error.sequence, offset));
        let tag = self.tags.get(after.checked_sub(1)?)?;
        (tag.sequence == error.sequence).then(|| tag.object_at(offset))
    }

    /// Returns the header and payload of the message with this sequence number: the request that an error is
    /// about.
    #[must_use]
    pub fn find(&self, sequence: u32) -> Option<(Header, &[u8])> {
        // By index and not by a search: there may be as many errors as messages.
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        let message = Messages::new(self.bytes.get(*self.starts.get(index)?..)?).next()?.ok()?;
        Some((message.header, message.payload))
    }

    fn frame(&mut self, kind: u16, flags: Flags, subsystem: u8, object: u64) -> MessageWriter<'_> {
        let mut message = self.message(kind, flags, object);
        message.raw(&NfGenMsg { family: 0, version: 0, resource: subsystem.into() }.bytes());
        message
    }
}

/// An open message of a [`Batch`]. Dropping it checks its length and writes it into the header.
#[derive(Debug)]
pub struct MessageWriter<'b>(Writer<'b>);

impl MessageWriter<'_> {
    /// Returns the message's sequence number.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.0.sequence
    }
}

impl<'b> Deref for MessageWriter<'b> {
    type Target = Writer<'b>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for MessageWriter<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for MessageWriter<'_> {
    #[inline]
    fn drop(&mut self) {
        let Self(writer) = self;
        let length = writer.message_len();
        let field = u32::try_from(length).unwrap_or_else(|_| {
            writer.too_long.get_or_insert(TooLong::Message { sequence: writer.sequence, length });
            0
        });
        if let Some(place) = writer.bytes.get_mut(writer.start..writer.start + 4) {
            place.copy_from_slice(&field.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(sequence: u32, offset: Option<u32>) -> KernelError {
        KernelError { offset, ..KernelError::new(sequence, crate::Errno::ENOENT) }
    }

    #[test]
    fn an_error_leads_to_the_tagged_attribute_or_the_message() {
        let mut batch = Batch::new();
        let mut message = batch.netfilter(10, 12, Flags::CREATE, 2, 100);
        message.put_str(1, "set");
        let mut list = message.nest(3);
        list.tag(200);
        list.put_u32(1, 1);
        list.tag(201);
        list.put_u32(1, 2);
        drop(list);
        drop(message);
        drop(batch.netfilter(10, 12, Flags::CREATE, 2, 101));

        // nlmsghdr 16, nfgenmsg 4, the name 8, the nest's header 4: the first element is at 32, the second at
        // 40.
        assert_eq!(batch.object(&error(1, None)), Some(100));
        assert_eq!(batch.object(&error(1, Some(20))), Some(100));
        assert_eq!(batch.object(&error(1, Some(32))), Some(200));
        assert_eq!(batch.object(&error(1, Some(36))), Some(200));
        assert_eq!(batch.object(&error(1, Some(40))), Some(201));
        assert_eq!(batch.object(&error(2, Some(28))), Some(101));
        assert_eq!(batch.object(&error(3, None)), None);
        assert_eq!(batch.object(&error(0, Some(50))), None);
    }

    #[test]
    fn an_error_in_a_list_leads_to_the_attribute_by_its_length() {
        let mut batch = Batch::new();
        let mut message = batch.netfilter(10, 12, Flags::CREATE, 2, 100);
        message.tag_each(200, 12);
        (0..3).for_each(|number| message.put_u64(1, number));
        message.tag(300);
        message.put_u32(2, 0);
        drop(message);
        drop(batch.netfilter(10, 12, Flags::CREATE, 2, 101));
        let at = |offset| batch.object(&error(1, Some(offset)));
        assert_eq!([0, 16, 20, 31, 32, 44, 55].map(at), [100, 100, 200, 200, 201, 202, 202].map(Some));
        assert_eq!([56, 60].map(at), [Some(300); 2]);
        assert_eq!(batch.object(&error(2, Some(28))), Some(101));
    }

    #[test]
    fn a_batch_is_framed_as_nfnetlink_wants_it() {
        let mut batch = Batch::starting_at(7);
        batch.begin(10, Some(5), 0);
        batch.commit(10, 0);
        let expected = [
            28, 0, 0, 0, 0x10, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 8, 0, 1, 0, 0, 0, 0, 5, //
            20, 0, 0, 0, 0x11, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10,
        ];
        assert_eq!(batch.bytes().unwrap(), expected);
        assert_eq!((batch.messages(), batch.first_sequence(), batch.next_sequence()), (2, 7, 9));
        assert_eq!(batch.find(7).unwrap().0.kind, NFNL_MSG_BATCH_BEGIN);
        assert_eq!(batch.find(8).unwrap().0.kind, NFNL_MSG_BATCH_END);
        assert_eq!((batch.find(6), batch.find(9)), (None, None));
    }

    #[test]
    fn a_restarted_batch_equals_a_new_one() {
        let mut batch = Batch::new();
        batch.message(1, Flags::REQUEST, 5).put(9, &vec![0; 70_000]);
        batch.restart(3);
        drop(batch.message(2, Flags::REQUEST, 6));
        let mut fresh = Batch::starting_at(3);
        drop(fresh.message(2, Flags::REQUEST, 6));
        assert_eq!(batch.bytes().unwrap(), fresh.bytes().unwrap());
        assert_eq!((batch.object(&error(1, None)), batch.object(&error(3, None))), (None, Some(6)));
    }

    #[test]
    fn the_bytes_of_a_batch_with_a_length_that_does_not_fit_are_an_error() {
        let mut batch = Batch::new();
        batch.message(1, Flags::REQUEST, 0).put(9, &vec![0; 70_000]);
        assert_eq!(batch.bytes(), Err(TooLong::Attribute { sequence: 1, kind: 9, length: 70_004 }));
    }
}
