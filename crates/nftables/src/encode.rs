//! A transaction as netlink messages (`enum nf_tables_msg_types`).

use std::collections::{BTreeSet, HashMap};

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, MessageWriter};

use crate::apply::ApplyOptions;
use crate::error::Error;
use crate::family::Family;
use crate::lang::lower::{self, AnonymousSet, Before, Lowered, lower};
use crate::lang::{LowerError, Statement};
use crate::object::chain::{NFTA_CHAIN_HANDLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, encode_bound};
use crate::object::devices::encode_still_there;
use crate::object::element::{self, Form};
use crate::object::rule::{self, NFTA_RULE_CHAIN, NFTA_RULE_CHAIN_ID, NFTA_RULE_HANDLE, NFTA_RULE_TABLE};
use crate::object::set::{NFTA_SET_NAME, NFTA_SET_TABLE};
use crate::object::table::NFTA_TABLE_NAME;
use crate::object::{Element, Elements, HookOwner, Rule, Set, SetId};
use crate::place::Places;
use crate::transaction::{Flush, HandleId, Object, Operation, Rename, Target, Transaction, known};

/// Writes operations into a batch.
pub(crate) struct Encoder<'t> {
    pub(crate) batch: Batch,
    transaction: &'t Transaction,
    places: &'t Places,
    /// The sets that the transaction makes.
    sets: HashMap<&'t SetId, &'t Set>,
    /// Sets and chains without a name so far; each has a number in the batch.
    numbers: u32,
    /// The sets that it does not make, and of which it would have to be known whether they hold intervals, each named as a set.
    pub(crate) doubts: BTreeSet<SetId>,
    /// The longest message that is wanted.
    message_limit: usize,
    /// What every message has besides its own flags.
    echo: Flags,
}

impl<'t> Encoder<'t> {
    /// Starts a batch that the kernel applies as a whole; with a generation, only on that one.
    pub(crate) fn new(transaction: &'t Transaction, places: &'t Places, options: ApplyOptions) -> Self {
        let mut batch = Batch::new();
        batch.begin(SUBSYSTEM, options.generation, NO_OPERATION);
        let echo = if options.echo { Flags::ECHO } else { Flags::empty() };
        let (sets, numbers, message_limit) = (transaction.sets(), 0, MAX_LIST);
        let doubts = BTreeSet::new();
        Self { batch, transaction, places, sets, numbers, doubts, message_limit, echo }
    }

    /// Writes messages of elements no longer than this, but for one element's length.
    pub(crate) fn limit_messages(&mut self, bytes: usize) {
        self.message_limit = bytes.min(MAX_LIST);
    }

    /// Ends the batch.
    pub(crate) fn finish(mut self) -> Batch {
        self.batch.commit(SUBSYSTEM, NO_OPERATION);
        self.batch
    }

    /// Writes the operation with this index.
    pub(crate) fn operation(&mut self, index: usize) -> Result<(), Error> {
        let Some(operation) = self.transaction.operations().get(index) else { return Ok(()) };
        if let Some(elements) = operation.elements()
            && let Some(cause) = element::backwards(&elements.list)
        {
            return Err(of_elements(index, elements, cause));
        }
        let tag = tag(index, 0);
        let create = Flags::CREATE;
        match operation {
            Operation::Add(object) => self.object(index, object, create)?,
            Operation::Create(object) => self.object(index, object, create | Flags::EXCL)?,
            Operation::Insert(rule) => self.rule(index, rule, create)?,
            Operation::Replace(rule) => self.rule(index, rule, Flags::REPLACE)?,
            Operation::Rename(rename) => self.rename(index, rename)?,
            Operation::Delete(target) => self.target(tag, target, false),
            Operation::Destroy(target) => self.target(tag, target, true),
            Operation::Flush(target) => self.flush(tag, target),
        }
        Ok(())
    }

    fn object(&mut self, index: usize, object: &Object, flags: Flags) -> Result<(), Error> {
        let tag = tag(index, 0);
        match object {
            Object::Table(table) => {
                table.encode(&mut self.message(NFT_MSG_NEWTABLE, flags, table.id.family, tag));
            }
            Object::Chain(chain) => {
                chain.encode(&mut self.message(NFT_MSG_NEWCHAIN, flags, chain.id.table.family, tag));
            }
            Object::Set(set) => {
                let refused = |cause| refused(index, &format_args!("{} {}", set.word(), set.id), cause);
                carried(&set.statements).map_err(refused)?;
                let number = self.number();
                set.encode(&mut self.message(NFT_MSG_NEWSET, flags, set.id.table.family, tag), number);
            }
            Object::Stateful(object) => {
                object.config.check().map_err(|cause| refused(index, &object.id, cause))?;
                object.encode(&mut self.message(NFT_MSG_NEWOBJ, flags, object.id.table.family, tag));
            }
            Object::Flowtable(flowtable) => {
                let family = flowtable.id.table.family;
                flowtable.encode(&mut self.message(NFT_MSG_NEWFLOWTABLE, flags, family, tag));
            }
            Object::Rule(rule) => {
                // The kernel keeps a rule's order by this flag, and knows no "exists already" for rules.
                self.rule(index, rule, Flags::CREATE | Flags::APPEND)?;
            }
            Object::Elements(elements) => {
                self.fits(index, elements)?;
                for element in &elements.list {
                    carried(element.statements()).map_err(|cause| of_elements(index, elements, cause))?;
                }
                self.elements(index, elements, NFT_MSG_NEWSETELEM, flags, false);
            }
        }
        Ok(())
    }

    /// Whether elements are made as the set is, if the transaction makes that. The kernel compares lengths, and `80 . 10.0.0.1` is as long as
    /// `10.0.0.1 . 80`.
    fn fits(&self, index: usize, elements: &Elements) -> Result<(), Error> {
        let misfit = |set: &Set| element::misfit(set, &elements.list);
        let Some(cause) = known(&self.sets, &elements.set).and_then(misfit) else { return Ok(()) };
        // They may be meant for a set of that name which goes before this one comes.
        let before = self.transaction.sets_before(index);
        if known(&before, &elements.set).is_none_or(|set| misfit(set).is_none()) {
            return Ok(());
        }
        Err(of_elements(index, elements, cause))
    }

    fn rule(&mut self, index: usize, rule: &Rule, flags: Flags) -> Result<(), Error> {
        let table = &rule.chain.table;
        let lowered = self.lower(index, rule).map_err(|cause| refused(index, rule, cause))?;
        for before in &lowered.before {
            match before {
                Before::Set(set) => self.anonymous(index, set),
                Before::Chain(number) => {
                    let tag = tag(index, 0);
                    encode_bound(
                        table,
                        *number,
                        &mut self.message(NFT_MSG_NEWCHAIN, Flags::CREATE, table.family, tag),
                    );
                }
                Before::Rule { chain, exprs, comment } => {
                    let flags = Flags::CREATE | Flags::APPEND;
                    let mut message = self.message(NFT_MSG_NEWRULE, flags, table.family, tag(index, 0));
                    message.put_str(NFTA_RULE_TABLE, &table.name);
                    message.put_be32(NFTA_RULE_CHAIN_ID, *chain);
                    rule::encode_body(table.family, exprs, comment.as_ref(), &mut message);
                }
            }
        }
        let places = self.places;
        let mut message = self.message(NFT_MSG_NEWRULE, flags, table.family, tag(index, 0));
        let replaced = rule.handle.filter(|_| flags.contains(Flags::REPLACE));
        rule.encode(&lowered.exprs, replaced, &mut message);
        places.encode(index, rule, &mut message)
    }

    /// The rule's expressions, by the sets that the transaction makes.
    fn lower(&mut self, index: usize, rule: &Rule) -> Result<Lowered, LowerError> {
        let (table, statements) = (&rule.chain.table, &rule.statements);
        let numbers = self.numbers;
        let intervals = self.places.intervals();
        let mut lowered = lower(table, statements, &self.sets, intervals, &mut self.numbers);
        if let Err(LowerError::KeyType { .. } | LowerError::ValueType { .. }) = lowered {
            // It may be meant for a set of that name which goes before this one comes.
            self.numbers = numbers;
            let sets = self.transaction.sets_before(index);
            lowered = lower(table, statements, &sets, intervals, &mut self.numbers);
        }
        if let Ok(lowered) = &mut lowered {
            self.doubts.extend(lowered.doubts.drain(..));
        }
        lowered
    }

    fn anonymous(&mut self, index: usize, anonymous: &AnonymousSet) {
        let AnonymousSet { number, set, elements, key_type } = anonymous;
        let family = set.id.table.family;
        let mut message = self.message(NFT_MSG_NEWSET, Flags::CREATE, family, tag(index, 0));
        set.encode_typed(&mut message, *number, *key_type);
        drop(message);
        let form = Form::of(set);
        let start =
            (form == Form::Interval && element::needs_start(elements)).then(|| elements.first()).flatten();
        let destination = Destination { id: &set.id, number: Some(*number), form, start };
        self.list(index, &destination, elements, NFT_MSG_NEWSETELEM, Flags::CREATE, false);
    }

    fn elements(&mut self, index: usize, elements: &Elements, command: u8, flags: Flags, key_only: bool) {
        let form = self.form(elements);
        let destination = Destination { id: &elements.set, number: None, form, start: None };
        self.list(index, &destination, &elements.list, command, flags, key_only);
    }

    /// Whether elements are intervals: as the transaction itself defines the set, as the kernel says, else as the elements look.
    fn form(&mut self, elements: &Elements) -> Form {
        match known(&self.sets, &elements.set).map(Form::of) {
            // A range in a set without `flags interval` is sent as one, for the kernel to refuse. Its first key alone is not what was meant.
            Some(Form::Plain) if elements.list.iter().any(Element::is_range) => Form::guess(&elements.list),
            Some(form) => form,
            None => match Form::guess(&elements.list) {
                // An end says by itself that it is one.
                Form::Plain if element::are_otherwise_in_intervals(&elements.list) => {
                    let id = SetId { map: false, ..elements.set.clone() };
                    if self.places.intervals().contains(&id) {
                        return Form::of_intervals(&elements.list);
                    }
                    self.doubts.insert(id);
                    Form::Plain
                }
                form => form,
            },
        }
    }

    /// Packs elements into as few messages as their limit of 64 KiB allows.
    fn list(
        &mut self,
        index: usize,
        destination: &Destination<'_>,
        elements: &[Element],
        command: u8,
        flags: Flags,
        key_only: bool,
    ) {
        let mut position = 0;
        while position < elements.len() {
            position = self.message_of(index, destination, elements, position, command, flags, key_only);
        }
    }

    /// One message of the elements from a position on. Returns the position behind its last.
    #[allow(clippy::too_many_arguments, reason = "what a message of elements is made of")]
    fn message_of(
        &mut self,
        index: usize,
        destination: &Destination<'_>,
        elements: &[Element],
        mut position: usize,
        command: u8,
        flags: Flags,
        key_only: bool,
    ) -> usize {
        let limit = self.message_limit.saturating_sub(ELEMENT_ROOM);
        let family = destination.id.table.family;
        let mut message = self.message(command, flags, family, tag(index, position));
        message.put_str(NFTA_SET_ELEM_LIST_TABLE, &destination.id.table.name);
        message.put_str(NFTA_SET_ELEM_LIST_SET, &destination.id.name);
        if let Some(number) = destination.number {
            message.put_be32(NFTA_SET_ELEM_LIST_SET_ID, number);
        }
        let mut list = message.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
        if let (Some(first), 0) = (destination.start, position) {
            element::encode_start(first.key(), &mut list);
        }
        while let Some(element) = elements.get(position) {
            list.tag(tag(index, position));
            element.encode(&mut list, destination.form, key_only);
            position += 1;
            if list.nest_len() > limit {
                break;
            }
        }
        position
    }

    /// Writes one message of the elements that an operation adds, if it does, from a position on. Returns where the next message
    /// starts; `None` when the operation has been written whole.
    pub(crate) fn piece(&mut self, index: usize, position: usize) -> Result<Option<usize>, Error> {
        let Some(Operation::Add(Object::Elements(elements))) = self.transaction.operations().get(index)
        else {
            self.operation(index)?;
            return Ok(None);
        };
        let form = self.form(elements);
        let destination = Destination { id: &elements.set, number: None, form, start: None };
        let next = self.message_of(
            index,
            &destination,
            &elements.list,
            position,
            NFT_MSG_NEWSETELEM,
            Flags::CREATE,
            false,
        );
        Ok((next < elements.list.len()).then_some(next))
    }

    /// The kernel takes a handle and a name as: the chain with this handle gets this name.
    fn rename(&mut self, index: usize, rename: &Rename) -> Result<(), Error> {
        let Rename { chain, handle, name } = rename;
        let handle = handle.or_else(|| self.places.chain(index));
        let handle =
            handle.ok_or_else(|| Error::Rename { operation: index, chain: chain.clone(), asked: false })?;
        let mut message = self.message(NFT_MSG_NEWCHAIN, Flags::empty(), chain.table.family, tag(index, 0));
        message.put_str(NFTA_CHAIN_TABLE, &chain.table.name);
        message.put_be64(NFTA_CHAIN_HANDLE, handle);
        message.put_str(NFTA_CHAIN_NAME, name);
        Ok(())
    }

    fn target(&mut self, tag: u64, target: &Target, destroy: bool) {
        let command = |delete: u8, gone: u8| if destroy { gone } else { delete };
        match target {
            Target::Table(table) => {
                let command = command(NFT_MSG_DELTABLE, NFT_MSG_DESTROYTABLE);
                let mut message = self.message(command, Flags::empty(), table.family, tag);
                message.put_str(NFTA_TABLE_NAME, &table.name);
            }
            Target::Chain(chain) => {
                let command = command(NFT_MSG_DELCHAIN, NFT_MSG_DESTROYCHAIN);
                let mut message = self.message(command, Flags::empty(), chain.table.family, tag);
                message.put_str(NFTA_CHAIN_TABLE, &chain.table.name);
                message.put_str(NFTA_CHAIN_NAME, &chain.name);
            }
            Target::Rule(rule) => {
                let command = command(NFT_MSG_DELRULE, NFT_MSG_DESTROYRULE);
                let mut message = self.message(command, Flags::empty(), rule.chain.table.family, tag);
                message.put_str(NFTA_RULE_TABLE, &rule.chain.table.name);
                message.put_str(NFTA_RULE_CHAIN, &rule.chain.name);
                message.put_be64(NFTA_RULE_HANDLE, rule.handle);
            }
            Target::Set(set) => {
                let command = command(NFT_MSG_DELSET, NFT_MSG_DESTROYSET);
                let mut message = self.message(command, Flags::empty(), set.table.family, tag);
                message.put_str(NFTA_SET_TABLE, &set.table.name);
                message.put_str(NFTA_SET_NAME, &set.name);
            }
            Target::Stateful(object) => {
                let command = command(NFT_MSG_DELOBJ, NFT_MSG_DESTROYOBJ);
                object.encode(&mut self.message(command, Flags::empty(), object.table.family, tag));
            }
            Target::Flowtable(flowtable) => {
                let command = command(NFT_MSG_DELFLOWTABLE, NFT_MSG_DESTROYFLOWTABLE);
                flowtable.encode(&mut self.message(command, Flags::empty(), flowtable.table.family, tag));
            }
            Target::Handle(handle) => self.handle(tag, handle, destroy),
            Target::Devices(devices) => {
                let (family, command) = match &devices.hook {
                    HookOwner::Chain(chain) => {
                        (chain.table.family, command(NFT_MSG_DELCHAIN, NFT_MSG_DESTROYCHAIN))
                    }
                    HookOwner::Flowtable(flowtable) => {
                        (flowtable.table.family, command(NFT_MSG_DELFLOWTABLE, NFT_MSG_DESTROYFLOWTABLE))
                    }
                };
                devices.encode(&mut self.message(command, Flags::empty(), family, tag));
                if let HookOwner::Chain(chain) = &devices.hook {
                    encode_still_there(
                        chain,
                        &mut self.message(NFT_MSG_NEWCHAIN, Flags::empty(), family, tag),
                    );
                }
            }
            Target::Elements(elements) => {
                let command = command(NFT_MSG_DELSETELEM, NFT_MSG_DESTROYSETELEM);
                let index = untag(tag).map_or(0, |(operation, _)| operation);
                self.elements(index, elements, command, Flags::empty(), true);
            }
        }
    }

    fn handle(&mut self, tag: u64, target: &HandleId, destroy: bool) {
        let (family, table, handle) = match target {
            HandleId::Table(family, handle) => (*family, None, *handle),
            HandleId::Chain(table, handle)
            | HandleId::Set(table, handle)
            | HandleId::Stateful(table, _, handle)
            | HandleId::Flowtable(table, handle) => (table.family, Some(&table.name), *handle),
        };
        let (delete, gone, attribute) = match target {
            HandleId::Table(..) => (NFT_MSG_DELTABLE, NFT_MSG_DESTROYTABLE, NFTA_TABLE_HANDLE),
            HandleId::Chain(..) => (NFT_MSG_DELCHAIN, NFT_MSG_DESTROYCHAIN, NFTA_CHAIN_HANDLE),
            HandleId::Set(..) => (NFT_MSG_DELSET, NFT_MSG_DESTROYSET, NFTA_SET_HANDLE),
            HandleId::Stateful(..) => (NFT_MSG_DELOBJ, NFT_MSG_DESTROYOBJ, NFTA_OBJ_HANDLE),
            HandleId::Flowtable(..) => {
                (NFT_MSG_DELFLOWTABLE, NFT_MSG_DESTROYFLOWTABLE, NFTA_FLOWTABLE_HANDLE)
            }
        };
        let command = if destroy { gone } else { delete };
        let mut message = self.message(command, Flags::empty(), family, tag);
        if let Some(table) = table {
            message.put_str(NFTA_TABLE, table);
        }
        if let HandleId::Stateful(_, kind, _) = target {
            message.put_be32(NFTA_OBJ_TYPE, kind.0);
        }
        message.put_be64(attribute, handle);
    }

    fn flush(&mut self, tag: u64, target: &Flush) {
        match target {
            Flush::Ruleset(family) => drop(self.message(NFT_MSG_DELTABLE, Flags::empty(), *family, tag)),
            Flush::Table(table) => {
                let mut message = self.message(NFT_MSG_DELRULE, Flags::empty(), table.family, tag);
                message.put_str(NFTA_RULE_TABLE, &table.name);
            }
            Flush::Chain(chain) => {
                let mut message = self.message(NFT_MSG_DELRULE, Flags::empty(), chain.table.family, tag);
                message.put_str(NFTA_RULE_TABLE, &chain.table.name);
                message.put_str(NFTA_RULE_CHAIN, &chain.name);
            }
            Flush::Set(set) => {
                let mut message = self.message(NFT_MSG_DELSETELEM, Flags::empty(), set.table.family, tag);
                message.put_str(NFTA_SET_ELEM_LIST_TABLE, &set.table.name);
                message.put_str(NFTA_SET_ELEM_LIST_SET, &set.name);
            }
        }
    }

    fn message(&mut self, command: u8, flags: Flags, family: Family, tag: u64) -> MessageWriter<'_> {
        self.batch.netfilter(SUBSYSTEM, command, flags | self.echo, family.0, tag)
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }
}

fn refused(operation: usize, what: &impl ToString, cause: LowerError) -> Error {
    Error::Statement { operation, object: what.to_string(), cause: Box::new(cause) }
}

fn of_elements(operation: usize, elements: &Elements, cause: LowerError) -> Error {
    refused(operation, &format_args!("element {}", elements.set), cause)
}

/// Refuses what the elements of a set cannot carry.
fn carried(statements: &[Statement]) -> Result<(), LowerError> {
    statements.iter().try_for_each(|statement| lower::carried(statement).map(drop))
}

/// Where elements go.
struct Destination<'a> {
    id: &'a SetId,
    number: Option<u32>,
    form: Form,
    /// The first element, where the space before it has to be marked.
    start: Option<&'a Element>,
}

/// What an error leads back to: the operation, and the element in it.
fn tag(operation: usize, element: usize) -> u64 {
    (operation as u64) << 32 | (element as u64 & 0xffff_ffff)
}

/// The operation and the element of a tag; `None` for the frame of the batch.
pub(crate) fn untag(tag: u64) -> Option<(usize, usize)> {
    if tag == NO_OPERATION {
        return None;
    }
    Some((usize::try_from(tag >> 32).ok()?, usize::try_from(tag & 0xffff_ffff).ok()?))
}

/// The tag of the batch's own frame.
const NO_OPERATION: u64 = u64::MAX;
/// The longest list of elements: its length is a u16.
const MAX_LIST: usize = 65_532;
/// What one more element may need: two keys of 64 bytes, a name, a comment, expressions.
const ELEMENT_ROOM: usize = 2_048;

/// `NFNL_SUBSYS_NFTABLES`
pub(crate) const SUBSYSTEM: u8 = 10;
const NFT_MSG_NEWTABLE: u8 = 0;
const NFT_MSG_DELTABLE: u8 = 2;
const NFT_MSG_NEWCHAIN: u8 = 3;
const NFT_MSG_DELCHAIN: u8 = 5;
const NFT_MSG_NEWRULE: u8 = 6;
const NFT_MSG_DELRULE: u8 = 8;
const NFT_MSG_NEWSET: u8 = 9;
const NFT_MSG_DELSET: u8 = 11;
const NFT_MSG_NEWSETELEM: u8 = 12;
const NFT_MSG_DELSETELEM: u8 = 14;
const NFT_MSG_NEWOBJ: u8 = 18;
const NFT_MSG_DELOBJ: u8 = 20;
const NFT_MSG_NEWFLOWTABLE: u8 = 22;
const NFT_MSG_DELFLOWTABLE: u8 = 24;
const NFT_MSG_DESTROYTABLE: u8 = 26;
const NFT_MSG_DESTROYCHAIN: u8 = 27;
const NFT_MSG_DESTROYRULE: u8 = 28;
const NFT_MSG_DESTROYSET: u8 = 29;
const NFT_MSG_DESTROYSETELEM: u8 = 30;
const NFT_MSG_DESTROYOBJ: u8 = 31;
const NFT_MSG_DESTROYFLOWTABLE: u8 = 32;
const NFTA_SET_ELEM_LIST_TABLE: u16 = 1;
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
const NFTA_SET_ELEM_LIST_SET_ID: u16 = 4;
/// `NFTA_CHAIN_TABLE`, `NFTA_SET_TABLE`, `NFTA_OBJ_TABLE`, `NFTA_FLOWTABLE_TABLE`
const NFTA_TABLE: u16 = 1;
const NFTA_TABLE_HANDLE: u16 = 4;
const NFTA_SET_HANDLE: u16 = 16;
const NFTA_OBJ_TYPE: u16 = 3;
const NFTA_OBJ_HANDLE: u16 = 6;
const NFTA_FLOWTABLE_HANDLE: u16 = 5;
