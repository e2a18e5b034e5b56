//! Rules: their order, and the sets, chains and objects that they refer to.

use sluicegate_netlink::Errno;
use sluicegate_netlink::message::Flags;

use crate::Family;
use crate::expr::Expr;
use crate::expr::wire::*;
use crate::fake::batch::Work;
use crate::fake::chain::{BINDING, HW_OFFLOAD};
use crate::fake::event::{Change, Subject};
use crate::fake::expression::{self, RuleContext};
use crate::fake::message::{Attrs, Done, Refusal, Request, refusal, refuse};
use crate::fake::offload;
use crate::fake::pending::Checks;
use crate::fake::state::{Reference, Rule, StoredExpr, Table};
use crate::fake::validate;
use crate::object::rule::wire::*;
use crate::wire::message::*;

/// Handles `NFT_MSG_NEWRULE`.
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let Work { state, set_ids, chain_ids, rule_ids, sized, offload_fails, .. } = work;
    let table = state.table(request, NFTA_RULE_TABLE)?;
    let chain = match (attrs.get(NFTA_RULE_CHAIN), attrs.be32(NFTA_RULE_CHAIN_ID)?) {
        (name @ Some(_), _) => table.chain_named(name).map_err(|r| r.at(name))?,
        (None, Some(id)) => expression::chain_by_id(chain_ids, table, id)
            .and_then(|handle| table.chain(handle))
            .ok_or(refusal(Errno::ENOENT).at(attrs.get(NFTA_RULE_CHAIN_ID)))?,
        (None, None) => return refuse(Errno::EINVAL),
    };
    if chain.bound {
        return refuse(Errno::EOPNOTSUPP);
    }
    let (chain, offload) = (chain.handle, chain.flags & HW_OFFLOAD != 0);
    let Place { handle, at, replaces } = place(table, chain, request, rule_ids)?;
    let mut context = RuleContext::new(handle, set_ids, chain_ids, sized);
    let exprs = expressions(table, &mut context, attrs)?;
    if offload {
        if let Err(refusal) = offload::check_rule(&exprs) {
            let refers = exprs.iter().filter_map(|stored| stored.refers);
            refers.for_each(|reference| unbind(table, reference, handle, true));
            return Err(refusal);
        }
        // A device can only append rules.
        let of_devices = Family(table.family) == Family::NETDEV;
        *offload_fails |= of_devices && (replaces || !request.flags.contains(Flags::APPEND));
    }
    let (user_data, number) = (attrs.bytes(NFTA_RULE_USERDATA), table.next_rule());
    if replaces {
        delete_one(table, chain, handle)?;
    }
    let owner = table.chain_mut(chain)?;
    owner.uses += 1;
    owner.rules.insert(at.min(owner.rules.len()), Rule { handle, number, exprs, user_data, active: true });
    table.record(Change::New, Subject::Rule(chain, number));
    if let Some(id) = attrs.be32(NFTA_RULE_ID)? {
        rule_ids.push((chain, id, handle));
    }
    work.changes += 1;
    let table = work.state.table(request, NFTA_RULE_TABLE)?;
    if table.checks == Checks::AtOnce { super::checks::table(table) } else { Ok(()) }
}

/// Handles `NFT_MSG_DELRULE` and `NFT_MSG_DESTROYRULE`: for one rule, all rules of a chain, or all rules of a
/// table.
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let destroy = request.command == NFT_MSG_DESTROYRULE;
    let table = work.state.table(request, NFTA_RULE_TABLE)?;
    let Some(name) = attrs.get(NFTA_RULE_CHAIN) else {
        let chains: Vec<(u64, usize)> = table
            .chains
            .iter()
            .filter(|chain| chain.flags & BINDING == 0)
            .map(|chain| (chain.handle, chain.rules().count()))
            .collect();
        for (chain, rules) in chains {
            delete_all(table, chain, true)?;
            work.changes += rules;
        }
        return Ok(());
    };
    let chain = match table.chain_named(Some(name)) {
        Ok(chain) => chain,
        Err(Refusal { errno: Errno::ENOENT, .. }) if destroy => return Ok(()),
        Err(refusal) => return Err(refusal.at(Some(name))),
    };
    if chain.flags & BINDING != 0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let (chain, rules) = (chain.handle, chain.rules().count());
    if let Some(handle) = attrs.be64(NFTA_RULE_HANDLE)? {
        if !has_rule(table, chain, handle) {
            let attribute = attrs.get(NFTA_RULE_HANDLE);
            return if destroy { Ok(()) } else { Err(refusal(Errno::ENOENT).at(attribute)) };
        }
        delete_one(table, chain, handle)?;
        work.changes += 1;
        return Ok(());
    }
    if let Some(id) = attrs.be32(NFTA_RULE_ID)? {
        let handle = by_id(&work.rule_ids, chain, id);
        let at = attrs.get(NFTA_RULE_ID);
        delete_one(table, chain, handle.ok_or(refusal(Errno::ENOENT).at(at))?)?;
        work.changes += 1;
        return Ok(());
    }
    delete_all(table, chain, true)?;
    work.changes += rules;
    Ok(())
}

/// Deletes all rules of a chain. The kernel sends no events for the rules of an anonymous chain that is
/// deleted with the rule that owns it.
pub(super) fn delete_all(table: &mut Table, chain: u64, notify: bool) -> Done {
    let owner = table.chain_mut(chain)?;
    let mut deleted = Vec::new();
    for rule in owner.rules.iter_mut().filter(|rule| rule.active) {
        rule.active = false;
        owner.uses = owner.uses.saturating_sub(1);
        deleted.push((rule.number, rule.handle, references(rule)));
    }
    for (number, handle, refers) in deleted {
        if notify {
            table.record(Change::Deleted, Subject::Rule(chain, number));
        }
        refers.into_iter().for_each(|reference| unbind(table, reference, handle, false));
    }
    Ok(())
}

fn references(rule: &Rule) -> Vec<Reference> {
    rule.exprs.iter().filter_map(|stored| stored.refers).collect()
}

/// Deletes a rule. It is an error if the transaction has deleted the rule before.
fn delete_one(table: &mut Table, chain: u64, handle: u64) -> Done {
    let owner = table.chain_mut(chain)?;
    let rule = owner.rules.iter_mut().find(|rule| rule.handle == handle && rule.active);
    let rule = rule.ok_or(refusal(Errno::ENOENT))?;
    rule.active = false;
    let (number, refers) = (rule.number, references(rule));
    owner.uses = owner.uses.saturating_sub(1);
    table.record(Change::Deleted, Subject::Rule(chain, number));
    refers.into_iter().for_each(|reference| unbind(table, reference, handle, false));
    Ok(())
}

fn has_rule(table: &Table, chain: u64, handle: u64) -> bool {
    table.chain(chain).is_some_and(|chain| chain.rules.iter().any(|rule| rule.handle == handle))
}

/// Releases one reference of a rule; `failed` is for a rule that was refused. A set stays bound to a deleted
/// rule until the transaction ends.
fn unbind(table: &mut Table, reference: Reference, rule: u64, failed: bool) {
    table.count(reference, false);
    match reference {
        Reference::Set(handle) => {
            let Ok(set) = table.set_mut(handle) else { return };
            if set.is_anonymous() {
                table.record(Change::Deleted, Subject::Set(handle));
                return super::set::remove(table, handle);
            }
            if failed {
                set.bindings.retain(|binding| binding.rule != rule);
            }
            set.bindings.iter_mut().filter(|b| b.rule == rule).for_each(|b| b.rule_deleted = true);
        }
        Reference::Chain(handle) => {
            let Some(chain) = table.chain(handle).filter(|chain| chain.flags & BINDING != 0) else { return };
            if chain.bound {
                let uses = chain.uses;
                let _ = delete_all(table, handle, false);
                if let Ok(chain) = table.chain_mut(handle) {
                    // The kernel releases the references of the chain's rules, but still counts the rules
                    // themselves.
                    chain.uses = uses;
                }
                table.remove_chain(handle);
            }
        }
        Reference::Object(_) | Reference::Flowtable(_) => {}
    }
}

/// The place of a rule in its chain.
struct Place {
    handle: u64,
    at: usize,
    replaces: bool,
}

fn place(
    table: &mut Table,
    chain: u64,
    request: &Request<'_>,
    ids: &[(u64, u32, u64)],
) -> Result<Place, Refusal> {
    let attrs = &request.attrs;
    let flags = request.flags;
    let find = |table: &Table, handle: u64| {
        table.chain(chain).and_then(|chain| chain.rules.iter().position(|rule| rule.handle == handle))
    };
    if let Some(handle) = attrs.be64(NFTA_RULE_HANDLE)? {
        let attribute = attrs.get(NFTA_RULE_HANDLE);
        let at = find(table, handle).ok_or(refusal(Errno::ENOENT).at(attribute))?;
        if flags.contains(Flags::EXCL) {
            return Err(refusal(Errno::EEXIST).at(attribute));
        }
        if !flags.contains(Flags::REPLACE) {
            return refuse(Errno::EOPNOTSUPP);
        }
        return Ok(Place { handle, at, replaces: true });
    }
    if !flags.contains(Flags::CREATE) || flags.contains(Flags::REPLACE) {
        return refuse(Errno::EINVAL);
    }
    let handle = table.next_handle();
    let beside = match (attrs.be64(NFTA_RULE_POSITION)?, attrs.be32(NFTA_RULE_POSITION_ID)?) {
        (Some(position), _) => {
            Some(find(table, position).ok_or(refusal(Errno::ENOENT).at(attrs.get(NFTA_RULE_POSITION)))?)
        }
        (None, Some(id)) => {
            let at = by_id(ids, chain, id).and_then(|handle| find(table, handle));
            Some(at.ok_or(refusal(Errno::ENOENT).at(attrs.get(NFTA_RULE_POSITION_ID)))?)
        }
        (None, None) => None,
    };
    let at = match (flags.contains(Flags::APPEND), beside) {
        (true, Some(at)) => at + 1,
        (true, None) => usize::MAX,
        (false, Some(at)) => at,
        (false, None) => 0,
    };
    Ok(Place { handle, at, replaces: false })
}

/// Returns the expressions of a rule, each with its reference. If one is refused, the references of those
/// before it are released.
fn expressions(
    table: &mut Table,
    context: &mut RuleContext<'_>,
    attrs: &Attrs<'_>,
) -> Result<Vec<StoredExpr>, Refusal> {
    let Some(list) = attrs.get(NFTA_RULE_EXPRESSIONS) else { return Ok(Vec::new()) };
    let mut parsed = Vec::new();
    for item in list.attributes() {
        let item = item.map_err(|_| refusal(Errno::EINVAL))?;
        if item.kind != NFTA_LIST_ELEM || parsed.len() == MAX_EXPRESSIONS {
            return refuse(Errno::EINVAL);
        }
        let expr = Expr::decode_strictly(&item).map_err(|_| refusal(Errno::EINVAL).at(Some(&item)))?;
        validate::exists(&expr, Family(table.family)).map_err(|refusal| refusal.at(Some(&item)))?;
        parsed.push((item, expr));
    }
    let mut stored: Vec<StoredExpr> = Vec::with_capacity(parsed.len());
    for (item, expr) in parsed {
        match expression::add_to_rule(table, context, &item, expr) {
            Ok(expr) => stored.push(expr),
            Err(refusal) => {
                let rule = context.rule;
                stored
                    .iter()
                    .filter_map(|stored| stored.refers)
                    .for_each(|reference| unbind(table, reference, rule, true));
                return Err(refusal.at(Some(&item)));
            }
        }
    }
    Ok(stored)
}

fn by_id(ids: &[(u64, u32, u64)], chain: u64, id: u32) -> Option<u64> {
    ids.iter().find(|(of, number, _)| *of == chain && *number == id).map(|(_, _, handle)| *handle)
}

/// `NFT_RULE_MAXEXPRS`
const MAX_EXPRESSIONS: usize = 128;
