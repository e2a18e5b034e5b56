//! Sends questions to the kernel, and interprets the answers.

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, Errno, KernelError, Transport, exchange};

use crate::apply::ApplyOptions;
use crate::error::Error;
use crate::expr::{Expr, ObjectKind, Unknown};
use crate::family::Family;
use crate::name::Name;
use crate::object::element::wire::{NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_TABLE};
use crate::object::rule::wire::{NFTA_RULE_CHAIN, NFTA_RULE_TABLE};
use crate::object::stateful::wire::NFTA_OBJ_DATA;
use crate::object::{Chain, ChainId, ObjectId, SetId, Table, TableId};
use crate::read::supports_hooks;
use crate::transaction::Transaction;
use crate::tree::Statement;
use crate::wire::message::{NFT_MSG_GETGEN, NFT_MSG_GETRULE_RESET, NFT_MSG_NEWOBJ, SUBSYSTEM};

/// A question to the kernel.
pub(super) enum Question<'a> {
    /// Does the kernel accept these operations, in a table and a chain of this family?
    Accepts(Family, fn(&Scene, &mut Transaction)),
    /// Does it accept a rule with these expressions?
    AcceptsRule(Family, fn() -> Vec<Expr>),
    /// Does it refuse an invalid value of an attribute?
    RefusesValue(InvalidValue),
    /// Does it have an expression with this name in this family?
    Expression(Family, &'a str),
    /// Does it have this kind of object in this family?
    Object(Family, ObjectKind),
    /// Does it know this message, a request for something in a table?
    KnowsMessage(u8, Flags),
    /// Does the kernel list the functions registered at a hook?
    RegisteredHooks,
}

/// An attribute with an invalid value.
pub(super) struct InvalidValue {
    /// The message (`enum nf_tables_msg_types`).
    pub(super) command: u8,
    /// The attribute with the name of the table.
    pub(super) table: u16,
    /// The attribute in question.
    pub(super) attribute: u16,
    /// The invalid value.
    pub(super) value: &'static [u8],
}

/// The table and chain of a question, which the batch adds first.
pub(super) struct Scene {
    pub(super) table: TableId,
    pub(super) chain: ChainId,
    pub(super) set: SetId,
}

impl Scene {
    fn new(family: Family) -> Self {
        let table = TableId::new(family, Name::from_kernel(TABLE));
        Self { chain: table.chain(Name::from_kernel("c")), set: table.set(Name::from_kernel("s")), table }
    }

    pub(super) fn object(&self, kind: ObjectKind) -> ObjectId {
        self.table.object(kind, Name::from_kernel("o"))
    }

    /// Returns a transaction that adds the table and the chain.
    fn set_up(&self) -> Transaction {
        let mut tx = Transaction::new();
        tx.add(Table::new(self.table.clone())).add(Chain::new(self.chain.clone()));
        tx
    }
}

impl Question<'_> {
    pub(super) fn ask(self, transport: &mut (impl Transport + ?Sized)) -> Result<bool, Error> {
        match self {
            Self::Accepts(family, fill) => {
                let scene = Scene::new(family);
                let mut tx = scene.set_up();
                fill(&scene, &mut tx);
                takes(transport, &tx)
            }
            Self::AcceptsRule(family, expressions) => takes(transport, &with_rule(family, expressions())),
            Self::RefusesValue(spoilt) => spoilt.is_refused(transport),
            Self::Expression(family, name) => {
                let bare = Unknown::new(Name::from_kernel(name), Vec::new());
                knows_name(transport, &dry_run(&with_rule(family, vec![bare.into()]))?)
            }
            Self::Object(family, kind) => {
                let scene = Scene::new(family);
                let mut batch = dry_run(&scene.set_up())?;
                let mut message =
                    batch.netfilter(SUBSYSTEM, NFT_MSG_NEWOBJ, Flags::CREATE, scene.table.family.0, QUESTION);
                scene.object(kind).encode(&mut message);
                drop(message.nest(NFTA_OBJ_DATA));
                drop(message);
                knows_name(transport, &batch)
            }
            Self::KnowsMessage(command, flags) => knows_message(transport, command, flags),
            Self::RegisteredHooks => Ok(supports_hooks(transport)?),
        }
    }
}

fn with_rule(family: Family, expressions: Vec<Expr>) -> Transaction {
    let scene = Scene::new(family);
    let mut tx = scene.set_up();
    tx.add(scene.chain.rule().then(Statement::Raw(expressions)));
    tx
}

fn takes(transport: &mut (impl Transport + ?Sized), question: &Transaction) -> Result<bool, Error> {
    match question.apply_with(transport, CHECK) {
        Ok(_) => Ok(true),
        Err(error) if error.failures().iter().any(|failure| is_inconclusive(failure.error.errno)) => {
            Err(error)
        }
        Err(Error::Rejected { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl InvalidValue {
    fn is_refused(&self, transport: &mut (impl Transport + ?Sized)) -> Result<bool, Error> {
        let mut batch = dry_run(&Transaction::new())?;
        let mut message = batch.netfilter(SUBSYSTEM, self.command, Flags::CREATE, Family::INET.0, 0);
        message.put_str(self.table, TABLE);
        message.tag(QUESTION);
        message.put(self.attribute, self.value);
        drop(message);
        let Some(error) = refusal(transport, &batch)? else { return Ok(false) };
        match error.errno {
            // Without extended acknowledgements the error has no offset; no other attribute of the message
            // can be out of range.
            Errno::ERANGE if error.offset.is_none() || batch.object(&error) == Some(QUESTION) => Ok(true),
            // The kernel ignored the attribute, and then missed the table or another attribute.
            Errno::ENOENT | Errno::EINVAL => Ok(false),
            _ => Err(sluicegate_netlink::Error::from(error).into()),
        }
    }
}

/// Returns whether the kernel knows the name in the last message of a batch.
fn knows_name(transport: &mut (impl Transport + ?Sized), batch: &Batch) -> Result<bool, Error> {
    match refusal(transport, batch)? {
        None => Ok(true),
        Some(error) if error.sequence + 1 != batch.next_sequence() || is_inconclusive(error.errno) => {
            Err(sluicegate_netlink::Error::from(error).into())
        }
        Some(error) => Ok(error.errno != Errno::ENOENT),
    }
}

fn knows_message(
    transport: &mut (impl Transport + ?Sized),
    command: u8,
    flags: Flags,
) -> Result<bool, Error> {
    let mut request = Batch::new();
    let mut message = request.netfilter(SUBSYSTEM, command, flags | Flags::ACK, Family::INET.0, QUESTION);
    let (table, container) = match command {
        NFT_MSG_GETRULE_RESET => (NFTA_RULE_TABLE, NFTA_RULE_CHAIN),
        _ => (NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_LIST_SET),
    };
    message.put_str(table, TABLE);
    message.put_str(container, "c");
    drop(message);
    let report = exchange(transport, &[&request], |_| Ok(()))?;
    match report.errors.into_iter().next() {
        None => Ok(true),
        Some(error) if error.errno == Errno::ENOENT => Ok(true),
        Some(error) if error.errno == Errno::EINVAL => Ok(false),
        Some(error) => Err(sluicegate_netlink::Error::from(error).into()),
    }
}

/// Returns a batch without its end, to which more messages can be added.
fn dry_run(transaction: &Transaction) -> Result<Batch, Error> {
    transaction.encode(CHECK)
}

/// Returns the first error for a batch without its end.
fn refusal(transport: &mut (impl Transport + ?Sized), batch: &Batch) -> Result<Option<KernelError>, Error> {
    let mut last = Batch::starting_at(batch.next_sequence());
    drop(last.netfilter(SUBSYSTEM, NFT_MSG_GETGEN, Flags::ACK, 0, 0));
    let report = exchange(transport, &[batch, &last], |_| Ok(()))?;
    Ok(report.errors.into_iter().next())
}

/// Returns whether the error does not answer the question: without permission or memory the kernel refuses
/// everything.
fn is_inconclusive(errno: Errno) -> bool {
    [Errno::EPERM, Errno::ENOMEM, Errno::EACCES, Errno::ENOBUFS].contains(&errno)
}

const CHECK: ApplyOptions = ApplyOptions { generation: None, check: true, echo: false };
/// The table of the questions. It is never created.
const TABLE: &str = "sluicegate-probe";
/// The tag of the message with the question.
const QUESTION: u64 = 1;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::scripted::{Script, ack, error};

    use super::*;
    use crate::fake::{Fake, Fault};
    use crate::probe::{Feature, supports};

    /// A kernel that reports this error for the message with this number, or none.
    fn answering(answer: Option<(u32, Errno, Option<u32>)>, last: u32) -> Script {
        let mut kernel = Script::new();
        let step = kernel.expect_any();
        if let Some((sequence, errno, offset)) = answer {
            step.reply(error(sequence, errno, None, offset));
        }
        kernel.expect_any().reply(ack(last));
        kernel
    }

    #[test]
    fn a_spoilt_attribute_is_known_when_it_is_blamed_only() {
        // Message 1 begins the batch, 2 is the question, 3 is always answered. In a message the nlmsghdr
        // takes 16 bytes, nfgenmsg 4, and the table's name ends at 24.
        let asks = |answer| supports(&mut answering(answer, 3), Feature::TableComment);
        assert!(asks(Some((2, Errno::ERANGE, Some(44)))).unwrap());
        assert!(asks(Some((2, Errno::ERANGE, None))).unwrap());
        assert!(!asks(None).unwrap());
        assert!(!asks(Some((2, Errno::ENOENT, Some(20)))).unwrap());
        assert!(!asks(Some((2, Errno::EINVAL, None))).unwrap());
        // An error for the name of the table, or for another message, is not an answer.
        assert!(asks(Some((2, Errno::ERANGE, Some(20)))).is_err());
        assert!(asks(Some((1, Errno::EOPNOTSUPP, None))).is_err());
        assert!(asks(Some((2, Errno::EPERM, None))).unwrap_err().is_permission_denied());
    }

    #[test]
    fn a_name_is_unknown_only_when_it_was_not_found_itself() {
        // The messages are: begin, table, chain, rule.
        let asks = |answer| supports(&mut answering(answer, 5), Feature::Numgen);
        assert!(asks(None).unwrap());
        assert!(asks(Some((4, Errno::EINVAL, Some(60)))).unwrap());
        assert!(!asks(Some((4, Errno::ENOENT, Some(60)))).unwrap());
        assert!(
            asks(Some((2, Errno::EAFNOSUPPORT, None))).is_err(),
            "the family is missing, not the expression"
        );
        assert!(asks(Some((4, Errno::EPERM, None))).unwrap_err().is_permission_denied());
        assert!(asks(Some((4, Errno::ENOMEM, None))).is_err());
    }

    #[test]
    fn a_kernel_without_memory_has_not_said_that_it_cannot() {
        let asks = |code| {
            let mut kernel = Fake::new();
            kernel.inject(Fault::Refuse(code));
            supports(&mut kernel, Feature::Destroy)
        };
        assert!(!asks(Errno::EINVAL).unwrap());
        for code in [Errno::EPERM, Errno::ENOMEM, Errno::EACCES, Errno::ENOBUFS] {
            assert_eq!(asks(code).unwrap_err().failures()[0].error.errno, code);
        }
    }

    #[test]
    fn a_message_is_known_when_its_table_is_missed() {
        let asks = |code| {
            let mut kernel = Script::new();
            kernel.expect_any().reply(error(1, code, None, None));
            supports(&mut kernel, Feature::RuleReset)
        };
        assert!(asks(Errno::ENOENT).unwrap());
        assert!(!asks(Errno::EINVAL).unwrap());
        assert!(asks(Errno::EPERM).unwrap_err().is_permission_denied());
    }
}
