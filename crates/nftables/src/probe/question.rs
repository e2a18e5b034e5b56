//! How a question is put to the kernel, and what its answer means.

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, KernelError, Transport, exchange};

use crate::apply::ApplyOptions;
use crate::encode::SUBSYSTEM;
use crate::error::Error;
use crate::expr::{Expr, ObjectKind, Unknown};
use crate::family::Family;
use crate::lang::Statement;
use crate::name::Name;
use crate::object::{Chain, ChainId, ObjectId, SetId, Table, TableId};
use crate::read::tells_hooks;
use crate::transaction::Transaction;

/// Ways to ask.
pub(super) enum Question<'a> {
    /// Does it take these operations, in a table and a chain of this family?
    Takes(Family, fn(&Scene, &mut Transaction)),
    /// Does it take a rule of these expressions?
    TakesRule(Family, fn() -> Vec<Expr>),
    /// Does it refuse a value that an attribute can never have?
    Refuses(Spoilt),
    /// Does it know an expression of this name in this family?
    Expression(Family, &'a str),
    /// Does it know this kind of object in this family?
    Object(Family, ObjectKind),
    /// Does it know this message, which asks for something in a table?
    Asks(u8, Flags),
    /// Does it tell what is registered at a hook?
    RegisteredHooks,
}

/// An attribute with a value that it can never have.
pub(super) struct Spoilt {
    /// The message (`enum nf_tables_msg_types`).
    pub(super) command: u8,
    /// Its attribute for the name of the table.
    pub(super) table: u16,
    /// The attribute.
    pub(super) attribute: u16,
    /// Its value.
    pub(super) value: &'static [u8],
}

/// What is there, in the kernel's eyes, when the question comes.
pub(super) struct Scene {
    pub(super) table: TableId,
    pub(super) chain: ChainId,
    pub(super) set: SetId,
}

impl Scene {
    fn new(family: Family) -> Self {
        let table = TableId::new(family, Name::held(TABLE));
        Self { chain: table.chain(Name::held("c")), set: table.set(Name::held("s")), table }
    }

    pub(super) fn object(&self, kind: ObjectKind) -> ObjectId {
        self.table.object(kind, Name::held("o"))
    }

    /// A transaction that makes the table and the chain.
    fn set_up(&self) -> Transaction {
        let mut tx = Transaction::new();
        tx.add(Table::new(self.table.clone())).add(Chain::new(self.chain.clone()));
        tx
    }
}

impl Question<'_> {
    pub(super) fn ask(self, transport: &mut (impl Transport + ?Sized)) -> Result<bool, Error> {
        match self {
            Self::Takes(family, fill) => {
                let scene = Scene::new(family);
                let mut tx = scene.set_up();
                fill(&scene, &mut tx);
                takes(transport, &tx)
            }
            Self::TakesRule(family, expressions) => takes(transport, &with_rule(family, expressions())),
            Self::Refuses(spoilt) => spoilt.is_refused(transport),
            Self::Expression(family, name) => {
                let bare = Unknown::new(Name::held(name), Vec::new());
                knows(transport, &dry_run(&with_rule(family, vec![bare.into()]))?)
            }
            Self::Object(family, kind) => {
                let scene = Scene::new(family);
                let mut batch = dry_run(&scene.set_up())?;
                let mut message =
                    batch.netfilter(SUBSYSTEM, NFT_MSG_NEWOBJ, Flags::CREATE, scene.table.family.0, ASKED);
                scene.object(kind).encode(&mut message);
                drop(message.nest(NFTA_OBJ_DATA));
                drop(message);
                knows(transport, &batch)
            }
            Self::Asks(command, flags) => knows_message(transport, command, flags),
            Self::RegisteredHooks => Ok(tells_hooks(transport)?),
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
        Err(error) if error.failures().iter().any(|failure| is_no_answer(failure.error.code)) => Err(error),
        Err(Error::Rejected { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Spoilt {
    fn is_refused(&self, transport: &mut (impl Transport + ?Sized)) -> Result<bool, Error> {
        let mut batch = dry_run(&Transaction::new())?;
        let mut message = batch.netfilter(SUBSYSTEM, self.command, Flags::CREATE, Family::INET.0, 0);
        message.put_str(self.table, TABLE);
        message.tag(ASKED);
        message.put(self.attribute, self.value);
        drop(message);
        let Some(error) = refusal(transport, &batch)? else { return Ok(false) };
        match error.code {
            // A transport that was opened without extended reports gives no place; nothing else is out of range.
            ERANGE if error.offset.is_none() || batch.object(&error) == Some(ASKED) => Ok(true),
            // It went on to look for the table, or for what else such a message has.
            ENOENT | EINVAL => Ok(false),
            _ => Err(sluicegate_netlink::Error::from(error).into()),
        }
    }
}

/// Whether the last message of a batch names something that there is.
fn knows(transport: &mut (impl Transport + ?Sized), batch: &Batch) -> Result<bool, Error> {
    match refusal(transport, batch)? {
        None => Ok(true),
        Some(error) if error.sequence + 1 != batch.next_sequence() || is_no_answer(error.code) => {
            Err(sluicegate_netlink::Error::from(error).into())
        }
        Some(error) => Ok(error.code != ENOENT),
    }
}

fn knows_message(
    transport: &mut (impl Transport + ?Sized),
    command: u8,
    flags: Flags,
) -> Result<bool, Error> {
    let mut request = Batch::new();
    let mut message = request.netfilter(SUBSYSTEM, command, flags | Flags::ACK, Family::INET.0, ASKED);
    message.put_str(NFTA_TABLE, TABLE);
    message.put_str(NFTA_SECOND, "c");
    drop(message);
    let report = exchange(transport, &[&request], |_| Ok(()))?;
    match report.errors.into_iter().next() {
        None => Ok(true),
        Some(error) if error.code == ENOENT => Ok(true),
        Some(error) if error.code == EINVAL => Ok(false),
        Some(error) => Err(sluicegate_netlink::Error::from(error).into()),
    }
}

/// A batch without its end, to which more can be added.
fn dry_run(transaction: &Transaction) -> Result<Batch, Error> {
    transaction.encode(CHECK)
}

/// The first refusal of a batch without its end.
fn refusal(transport: &mut (impl Transport + ?Sized), batch: &Batch) -> Result<Option<KernelError>, Error> {
    let mut last = Batch::starting_at(batch.next_sequence());
    drop(last.netfilter(SUBSYSTEM, NFT_MSG_GETGEN, Flags::ACK, 0, 0));
    let report = exchange(transport, &[batch, &last], |_| Ok(()))?;
    Ok(report.errors.into_iter().next())
}

/// Whether it says nothing of what was asked: without the right to ask, or without memory, anything is refused.
fn is_no_answer(code: i32) -> bool {
    [EPERM, ENOMEM, EACCES, ENOBUFS].contains(&code)
}

const CHECK: ApplyOptions = ApplyOptions { generation: None, check: true, echo: false };
/// The table of the questions. It is never made.
const TABLE: &str = "sluicegate-probe";
/// What a question is about, in answers.
const ASKED: u64 = 1;

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const EINVAL: i32 = 22;
const ERANGE: i32 = 34;
const ENOBUFS: i32 = 105;
const NFT_MSG_GETGEN: u8 = 16;
const NFT_MSG_NEWOBJ: u8 = 18;
const NFTA_OBJ_DATA: u16 = 4;
/// `NFTA_RULE_TABLE`, `NFTA_SET_ELEM_LIST_TABLE`
const NFTA_TABLE: u16 = 1;
/// `NFTA_RULE_CHAIN`, `NFTA_SET_ELEM_LIST_SET`
const NFTA_SECOND: u16 = 2;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::scripted::{Script, ack, error};

    use super::*;
    use crate::fake::{Fake, Fault};
    use crate::probe::{Feature, supports};

    /// A kernel that says this of the message with this number, or nothing.
    fn answering(said: Option<(u32, i32, Option<u32>)>, last: u32) -> Script {
        let mut kernel = Script::new();
        let step = kernel.expect_any();
        if let Some((sequence, code, offset)) = said {
            step.reply(error(sequence, code, None, offset));
        }
        kernel.expect_any().reply(ack(last));
        kernel
    }

    #[test]
    fn a_spoilt_attribute_is_known_when_it_is_blamed_only() {
        // The batch's start is message 1, the question 2, what is always answered 3. nlmsghdr 16, nfgenmsg 4, the table's name 24.
        let asks = |said| supports(&mut answering(said, 3), Feature::TableComment);
        assert!(asks(Some((2, ERANGE, Some(44)))).unwrap());
        assert!(asks(Some((2, ERANGE, None))).unwrap());
        assert!(!asks(None).unwrap());
        assert!(!asks(Some((2, ENOENT, Some(20)))).unwrap());
        assert!(!asks(Some((2, EINVAL, None))).unwrap());
        // Of the name of the table, or of something else: that is no answer.
        assert!(asks(Some((2, ERANGE, Some(20)))).is_err());
        assert!(asks(Some((1, 95, None))).is_err());
        assert!(asks(Some((2, EPERM, None))).unwrap_err().is_permission_denied());
    }

    #[test]
    fn a_name_is_unknown_only_when_it_was_not_found_itself() {
        // Start, table, chain, rule.
        let asks = |said| supports(&mut answering(said, 5), Feature::Numgen);
        assert!(asks(None).unwrap());
        assert!(asks(Some((4, EINVAL, Some(60)))).unwrap());
        assert!(!asks(Some((4, ENOENT, Some(60)))).unwrap());
        assert!(asks(Some((2, 97, None))).is_err(), "the family is missing, not the expression");
        assert!(asks(Some((4, EPERM, None))).unwrap_err().is_permission_denied());
        assert!(asks(Some((4, ENOMEM, None))).is_err());
    }

    #[test]
    fn a_kernel_without_memory_has_not_said_that_it_cannot() {
        let asks = |code| {
            let mut kernel = Fake::new();
            kernel.inject(Fault::Refuse(code));
            supports(&mut kernel, Feature::Destroy)
        };
        assert!(!asks(EINVAL).unwrap());
        for code in [EPERM, ENOMEM, EACCES, ENOBUFS] {
            assert_eq!(asks(code).unwrap_err().failures()[0].error.code, code);
        }
    }

    #[test]
    fn a_message_is_known_when_its_table_is_missed() {
        let asks = |code| {
            let mut kernel = Script::new();
            kernel.expect_any().reply(error(1, code, None, None));
            supports(&mut kernel, Feature::RuleReset)
        };
        assert!(asks(ENOENT).unwrap());
        assert!(!asks(EINVAL).unwrap());
        assert!(asks(EPERM).unwrap_err().is_permission_denied());
    }
}
