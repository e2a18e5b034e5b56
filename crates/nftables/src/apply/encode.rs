//! Encodes a transaction as netlink messages (`enum nf_tables_msg_types`).

use std::collections::{HashMap, HashSet};

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, MessageWriter};

use crate::apply::ApplyOptions;
use crate::apply::auto_merge::{Origin, Sent};
use crate::apply::opening::openings;
use crate::apply::resolve::Resolved;
use crate::check::LowerError;
use crate::check::elements::{backwards_range, range_of_names, type_mismatch, undeclared_statement};
use crate::compile::lower::{self, AnonymousSet, Before, Lowered, Refused, lower};
use crate::error::Error;
use crate::family::Family;
use crate::object::chain::wire::{NFTA_CHAIN_HANDLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, encode_bound};
use crate::object::devices::encode_existing;
use crate::object::element::wire::*;
use crate::object::element::{Form, representatives};
use crate::object::flowtable::wire::{NFTA_FLOWTABLE_HANDLE, NFTA_FLOWTABLE_TABLE};
use crate::object::rule::wire::{
    self as rule, NFTA_RULE_CHAIN, NFTA_RULE_CHAIN_ID, NFTA_RULE_HANDLE, NFTA_RULE_TABLE,
};
use crate::object::set::known;
use crate::object::set::wire::{NFTA_SET_HANDLE, NFTA_SET_NAME, NFTA_SET_TABLE};
use crate::object::stateful::wire::{NFTA_OBJ_HANDLE, NFTA_OBJ_TABLE, NFTA_OBJ_TYPE};
use crate::object::table::wire::{NFTA_TABLE_HANDLE, NFTA_TABLE_NAME};
use crate::object::{Element, Elements, HookOwner, Rule, Set, SetId};
use crate::transaction::{Flush, HandleId, Object, Operation, Rename, Target, Transaction};
use crate::tree::Statement;
use crate::wire::message::*;
use crate::wire::tag::{NO_OPERATION, tag, untag};

/// Writes operations into a batch.
pub(crate) struct Encoder<'t> {
    pub(crate) batch: Batch,
    transaction: &'t Transaction,
    resolved: &'t Resolved,
    /// The sets that the transaction creates, or whose definition it was given.
    sets: HashMap<&'t SetId, &'t Set>,
    /// The operations whose elements follow the marker for the empty space before the first interval.
    openings: HashSet<usize>,
    /// The number of the last anonymous set or chain: until the kernel names them, each has a number in the
    /// batch.
    numbers: u32,
    /// Existing sets whose flags decide how their elements are encoded (with intervals or without), each as
    /// the id of a set, also if it is a map.
    pub(crate) sets_to_query: Vec<SetId>,
    /// The maximum size of a message of elements, in bytes.
    message_limit: usize,
    /// `NLM_F_ECHO` if the caller asked for it: set on every message.
    echo: Flags,
}

impl<'t> Encoder<'t> {
    /// Starts a batch that the kernel applies as a whole; with a generation, only if the ruleset is still of
    /// that generation.
    pub(crate) fn new(transaction: &'t Transaction, resolved: &'t Resolved, options: ApplyOptions) -> Self {
        let mut batch = Batch::new();
        batch.begin(SUBSYSTEM, options.generation, NO_OPERATION);
        let echo = if options.echo { Flags::ECHO } else { Flags::empty() };
        let (sets, numbers, message_limit) = (transaction.known_sets(), 0, MAX_LIST);
        let (openings, sets_to_query) = (openings(transaction), Vec::new());
        Self { batch, transaction, resolved, sets, openings, numbers, sets_to_query, message_limit, echo }
    }

    /// Limits the size of messages with elements; a single element may exceed it.
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
        // Looked for once: that reads all elements.
        let examined = operation.elements().map_or(&[][..], |elements| representatives(&elements.list));
        if let Some(elements) = operation.elements()
            && let Some(cause) = backwards_range(examined)
        {
            return Err(of_elements(index, elements, cause));
        }
        let tag = tag(index, 0);
        let create = Flags::CREATE;
        match operation {
            Operation::Add(object) => self.object(index, object, examined, create)?,
            Operation::Create(object) => self.object(index, object, examined, create | Flags::EXCL)?,
            Operation::Insert(rule) => self.rule(index, rule, create)?,
            Operation::Replace(rule) => self.rule(index, rule, Flags::REPLACE)?,
            Operation::Rename(rename) => self.rename(index, rename)?,
            Operation::Delete(Target::Elements(elements)) if self.is_merged(index) => {
                self.merged(index, &elements.set);
            }
            Operation::Destroy(Target::Elements(elements)) if self.is_merged(index) => {
                self.merged(index, &elements.set);
            }
            Operation::Delete(target) => self.target(tag, target, examined, false),
            Operation::Destroy(target) => self.target(tag, target, examined, true),
            Operation::Flush(target) => self.flush(tag, target),
        }
        Ok(())
    }

    /// Encodes what adds an object; of elements, those `examined` stand for all.
    fn object(
        &mut self,
        index: usize,
        object: &Object,
        examined: &[Element],
        flags: Flags,
    ) -> Result<(), Error> {
        let tag = tag(index, 0);
        match object {
            Object::Table(table) => {
                table.encode(&mut self.message(NFT_MSG_NEWTABLE, flags, table.id.family, tag));
            }
            Object::Chain(chain) => {
                let family = chain.id.table.family;
                let checked = chain.base.as_ref().map_or(Ok(()), |base| base.check(family));
                checked.map_err(|cause| refused(index, &format_args!("chain {}", chain.id), cause))?;
                chain.encode(&mut self.message(NFT_MSG_NEWCHAIN, flags, family, tag));
            }
            Object::Set(set) => {
                let refused = |cause| refused(index, &format_args!("{} {}", set.word(), set.id), cause);
                set.check().and_then(|()| check_element_statements(&set.statements)).map_err(refused)?;
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
                // Without `NLM_F_APPEND` the kernel would put the rule first. Rules have no names, so
                // `create` and `add` are the same for them.
                self.rule(index, rule, Flags::CREATE | Flags::APPEND)?;
            }
            Object::Elements(elements) => {
                self.fits(index, elements, examined)?;
                range_of_names(examined).map_or(Ok(()), |cause| Err(of_elements(index, elements, cause)))?;
                for element in examined {
                    check_element_statements(element.statements())
                        .map_err(|cause| of_elements(index, elements, cause))?;
                }
                match self.is_merged(index) {
                    true => self.merged(index, &elements.set),
                    false => {
                        let form = self.form(elements, examined);
                        self.elements(index, elements, form, NFT_MSG_NEWSETELEM, flags, false);
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that the elements have the types of their set, if the transaction creates it. The kernel only
    /// compares lengths, and `80 . 10.0.0.1` is as long as `10.0.0.1 . 80`.
    fn fits(&self, index: usize, elements: &Elements, examined: &[Element]) -> Result<(), Error> {
        let mismatch =
            |set: &Set| type_mismatch(set, examined).or_else(|| undeclared_statement(set, &elements.list));
        let Some(cause) = known(&self.sets, &elements.set).and_then(mismatch) else { return Ok(()) };
        // The elements may be meant for an older set of the same name, which a later operation deletes.
        let before = self.transaction.known_before(index);
        if known(&before, &elements.set).is_none_or(|set| mismatch(set).is_none()) {
            return Ok(());
        }
        Err(of_elements(index, elements, cause))
    }

    fn rule(&mut self, index: usize, rule: &Rule, flags: Flags) -> Result<(), Error> {
        let table = &rule.chain.table;
        let lowered = self.lower(index, rule).map_err(|Refused { statement, cause }| Error::Statement {
            operation: index,
            statement: Some(statement),
            object: rule.to_string(),
            cause: Box::new(cause),
        })?;
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
        let resolved = self.resolved;
        let mut message = self.message(NFT_MSG_NEWRULE, flags, table.family, tag(index, 0));
        let replaced = rule.handle.filter(|_| flags.contains(Flags::REPLACE));
        rule.encode(&lowered.exprs, replaced, &mut message);
        resolved.encode(index, rule, &mut message)
    }

    /// Lowers the rule to expressions, using the sets that the transaction creates.
    fn lower(&mut self, index: usize, rule: &Rule) -> Result<Lowered, Refused> {
        let (table, statements) = (&rule.chain.table, rule.statements.read());
        let numbers = self.numbers;
        let intervals = self.resolved.intervals();
        let mut lowered = lower(table, &statements, &self.sets, intervals, &mut self.numbers);
        if let Err(Refused { cause: LowerError::KeyType { .. } | LowerError::ValueType { .. }, .. }) = lowered
        {
            // The rule may refer to an older set of the same name, which a later operation deletes.
            self.numbers = numbers;
            let sets = self.transaction.known_before(index);
            lowered = lower(table, &statements, &sets, intervals, &mut self.numbers);
        }
        if let Ok(lowered) = &mut lowered {
            self.sets_to_query.append(&mut lowered.sets_to_query);
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
        let start = (form == Form::Interval && needs_start(elements)).then(|| elements.first()).flatten();
        let mut destination =
            Destination { id: &set.id, number: Some(*number), form, start, origins: None, template: None };
        self.list(index, &mut destination, elements, NFT_MSG_NEWSETELEM, Flags::CREATE, false);
    }

    /// Returns whether other elements are sent instead of those of an operation, because its set merges them.
    fn is_merged(&self, index: usize) -> bool {
        self.resolved.change(index).is_some()
    }

    /// Encodes what is sent instead of the elements of an operation.
    fn merged(&mut self, index: usize, set: &SetId) {
        let resolved = self.resolved;
        let Some(change) = resolved.change(index) else { return };
        let (deleted, added) = (&change.deleted, &change.added);
        let mut destination = Destination::merging(set, deleted);
        self.list(index, &mut destination, &deleted.list, NFT_MSG_DELSETELEM, Flags::empty(), true);
        let start = self.opening(index, &added.list);
        let mut destination = Destination { start, ..Destination::merging(set, added) };
        self.list(index, &mut destination, &added.list, NFT_MSG_NEWSETELEM, Flags::CREATE, false);
    }

    /// Returns the first key of these elements if the marker for the empty space before them is sent.
    fn opening<'e>(&self, index: usize, elements: &'e [Element]) -> Option<&'e Element> {
        let first = || elements.iter().find(|element| !element.is_catch_all());
        self.openings.contains(&index).then(first).flatten()
    }

    fn elements(
        &mut self,
        index: usize,
        elements: &Elements,
        form: Form,
        command: u8,
        flags: Flags,
        key_only: bool,
    ) {
        // A deletion names elements alone.
        let start = if key_only { None } else { self.opening(index, &elements.list) };
        let mut destination =
            Destination { id: &elements.set, number: None, form, start, origins: None, template: None };
        self.list(index, &mut destination, &elements.list, command, flags, key_only);
    }

    /// Returns how the elements are encoded, with intervals or without: as the transaction defines the set,
    /// else as the kernel's set is defined, else as the elements suggest.
    fn form(&mut self, elements: &Elements, examined: &[Element]) -> Form {
        match known(&self.sets, &elements.set).map(Form::of) {
            // A range in a set without `flags interval` is encoded as a range so that the kernel refuses it.
            // Its lower bound alone would be stored as a single key, which the caller did not ask for.
            Some(Form::Plain) if examined.iter().any(Element::is_range) => Form::guess(examined),
            Some(form) => form,
            None => match Form::guess(examined) {
                // An element that is only the end of an interval carries a flag, so the form is known.
                Form::Plain if differ_in_intervals(examined) => {
                    let id = SetId { map: false, ..elements.set.clone() };
                    if self.resolved.intervals().contains(&id) {
                        return Form::of_intervals(examined);
                    }
                    self.sets_to_query.push(id);
                    Form::Plain
                }
                form => form,
            },
        }
    }

    /// Encodes elements in as few messages as possible; a list of elements has at most 64 KiB.
    fn list(
        &mut self,
        index: usize,
        destination: &mut Destination<'_>,
        elements: &[Element],
        command: u8,
        flags: Flags,
        key_only: bool,
    ) {
        if let Some(first) = elements.first() {
            self.batch.reserve(elements.len() * first.encoded_size());
        }
        let mut position = 0;
        while position < elements.len() {
            position = self.message_of(index, destination, elements, position, command, flags, key_only);
        }
    }

    /// Encodes one message with the elements from `position` on, and returns the position after its last one.
    #[allow(clippy::too_many_arguments, reason = "what a message of elements is made of")]
    fn message_of(
        &mut self,
        index: usize,
        destination: &mut Destination<'_>,
        elements: &[Element],
        mut position: usize,
        command: u8,
        flags: Flags,
        key_only: bool,
    ) -> usize {
        let limit = self.message_limit.saturating_sub(ELEMENT_ROOM);
        let alike = destination.alike(elements.get(position..).unwrap_or_default(), limit, key_only);
        let family = destination.id.table.family;
        let tag_of = |position| destination.tag(index, position);
        let mut message = self.message(command, flags, family, tag_of(position));
        message.put_str(NFTA_SET_ELEM_LIST_TABLE, &destination.id.table.name);
        message.put_str(NFTA_SET_ELEM_LIST_SET, &destination.id.name);
        if let Some(number) = destination.number {
            message.put_be32(NFTA_SET_ELEM_LIST_SET_ID, number);
        }
        let mut list = message.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
        if let (Some(first), 0) = (destination.start, position) {
            encode_start(&first.key(), &mut list);
        }
        if let Some((template, elements)) = alike {
            list.tag_each(tag_of(position), u32::try_from(template.len()).unwrap_or_default());
            template.encode(elements, &mut list);
            destination.template = Some(template);
            return position + elements.len();
        }
        while let Some(element) = elements.get(position) {
            list.tag(tag_of(position));
            let next = destination.number.and_then(|_| elements.get(position + 1));
            element.encode(&mut list, destination.form, key_only, next);
            position += 1;
            if list.nest_len() > limit {
                break;
            }
        }
        position
    }

    /// Encodes one message of the elements that an operation adds, from `position` on; other operations are
    /// encoded whole. Returns where the next message starts, or `None` if the operation is complete.
    pub(crate) fn piece(&mut self, index: usize, position: usize) -> Result<Option<usize>, Error> {
        let Some(Operation::Add(Object::Elements(elements))) = self.transaction.operations().get(index)
        else {
            self.operation(index)?;
            return Ok(None);
        };
        let resolved = self.resolved;
        let (mut destination, list) = match resolved.change(index) {
            // What replaces existing elements has to be in the same batch as their deletion.
            Some(change) if !change.deleted.list.is_empty() => {
                self.operation(index)?;
                return Ok(None);
            }
            Some(change) => {
                let start = self.opening(index, &change.added.list);
                let merging = Destination::merging(&elements.set, &change.added);
                (Destination { start, ..merging }, &change.added.list)
            }
            None => {
                let form = self.form(elements, representatives(&elements.list));
                let (id, start) = (&elements.set, self.opening(index, &elements.list));
                (Destination { id, number: None, form, start, origins: None, template: None }, &elements.list)
            }
        };
        let (command, flags) = (NFT_MSG_NEWSETELEM, Flags::CREATE);
        if list.is_empty() {
            return Ok(None);
        }
        let next = self.message_of(index, &mut destination, list, position, command, flags, false);
        Ok((next < list.len()).then_some(next))
    }

    /// Encodes the renaming of a chain: `NFT_MSG_NEWCHAIN` with a handle and a name.
    fn rename(&mut self, index: usize, rename: &Rename) -> Result<(), Error> {
        let Rename { chain, handle, name } = rename;
        let handle = handle.or_else(|| self.resolved.chain(index));
        let handle =
            handle.ok_or_else(|| Error::Rename { operation: index, chain: chain.clone(), asked: false })?;
        let mut message = self.message(NFT_MSG_NEWCHAIN, Flags::empty(), chain.table.family, tag(index, 0));
        message.put_str(NFTA_CHAIN_TABLE, &chain.table.name);
        message.put_be64(NFTA_CHAIN_HANDLE, handle);
        message.put_str(NFTA_CHAIN_NAME, name);
        Ok(())
    }

    fn target(&mut self, tag: u64, target: &Target, examined: &[Element], destroy: bool) {
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
                    encode_existing(chain, &mut self.message(NFT_MSG_NEWCHAIN, Flags::empty(), family, tag));
                }
            }
            Target::Elements(elements) => {
                let command = command(NFT_MSG_DELSETELEM, NFT_MSG_DESTROYSETELEM);
                let index = untag(tag).map_or(0, |(operation, _)| operation);
                let form = self.form(elements, examined);
                self.elements(index, elements, form, command, Flags::empty(), true);
            }
        }
    }

    fn handle(&mut self, tag: u64, target: &HandleId, destroy: bool) {
        let (family, handle) = match target {
            HandleId::Table(family, handle) => (*family, *handle),
            HandleId::Chain(table, handle)
            | HandleId::Set(table, handle)
            | HandleId::Stateful(table, _, handle)
            | HandleId::Flowtable(table, handle) => (table.family, *handle),
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
        let mut message = self.message(if destroy { gone } else { delete }, Flags::empty(), family, tag);
        match target {
            HandleId::Table(..) => {}
            HandleId::Chain(table, _) => message.put_str(NFTA_CHAIN_TABLE, &table.name),
            HandleId::Set(table, _) => message.put_str(NFTA_SET_TABLE, &table.name),
            HandleId::Stateful(table, kind, _) => {
                message.put_str(NFTA_OBJ_TABLE, &table.name);
                message.put_be32(NFTA_OBJ_TYPE, kind.0);
            }
            HandleId::Flowtable(table, _) => message.put_str(NFTA_FLOWTABLE_TABLE, &table.name),
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
    Error::Statement { operation, statement: None, object: what.to_string(), cause: Box::new(cause) }
}

fn of_elements(operation: usize, elements: &Elements, cause: LowerError) -> Error {
    refused(operation, &format_args!("element {}", elements.set), cause)
}

/// Checks that the elements of a set can carry these statements.
fn check_element_statements(statements: &[Statement]) -> Result<(), LowerError> {
    statements.iter().try_for_each(|statement| lower::element_expr(statement).map(drop))
}

/// The set that elements are added to or deleted from.
struct Destination<'a> {
    id: &'a SetId,
    number: Option<u32>,
    form: Form,
    /// The first element, if an interval set needs a marker for the empty space before it.
    start: Option<&'a Element>,
    /// Where each element stems from, if others are sent than those of the operation.
    origins: Option<&'a [Origin]>,
    /// The template of the elements in the message before.
    template: Option<Template>,
}

impl<'a> Destination<'a> {
    /// Creates the destination for elements that were merged.
    fn merging(id: &'a SetId, sent: &'a Sent) -> Self {
        Self {
            id,
            number: None,
            form: Form::Interval,
            start: None,
            origins: Some(&sent.origins),
            template: None,
        }
    }

    /// Returns the elements of the next message if all of them are alike, so that they can be encoded by their
    /// bytes, with the template.
    fn alike<'e>(
        &mut self,
        elements: &'e [Element],
        limit: usize,
        key_only: bool,
    ) -> Option<(Template, &'e [Element])> {
        let (first, _) = elements.split_first()?;
        if self.form != Form::Plain || self.number.is_some() || self.origins.is_some() {
            return None;
        }
        // That of the message before, to allocate one for each list only.
        let template = self.template.take().filter(|template| template.fits(first));
        let template = template.or_else(|| Template::of(first, key_only))?;
        // The last one passes the limit, as in a message of any elements.
        let count = limit.saturating_sub(LIST_HEADER).checked_div(template.len())? + 1;
        let elements = elements.get(..count).unwrap_or(elements);
        elements.iter().all(|element| template.fits(element)).then_some((template, elements))
    }

    /// Returns the tag of the element at a position of what is sent for an operation.
    fn tag(&self, operation: usize, position: usize) -> u64 {
        let origin = self.origins.and_then(|origins| origins.get(position).copied());
        let (operation, element) = origin.unwrap_or((operation, position));
        tag(operation, element)
    }
}

/// The maximum size of a list of elements in bytes: the length of an attribute is a `u16`.
const MAX_LIST: usize = 65_532;
/// The size of the header of a list of elements.
const LIST_HEADER: usize = 4;
/// Bytes reserved for one more element: two keys of 64 bytes, a name, a comment, expressions.
const ELEMENT_ROOM: usize = 2_048;
