//! Makes the kernel's tables equal to the wanted ones.

use std::collections::HashMap;

use sluicegate_netlink::Transport;

use crate::apply::ApplyOptions;
use crate::apply::echo::Applied;
use crate::error::Error;
use crate::listing::TableContent;
use crate::object::TableId;
use crate::read::{self, Ruleset};
use crate::reconcile::{Difference, Options, Reason, compare};

/// The result of [`sync`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// The differences, which were applied.
    pub difference: Difference,
    /// The result of the transaction; `None` if the tables were equal and nothing was sent.
    pub applied: Option<Applied>,
    /// How often the ruleset was read: more than once if another program changed it in the meantime.
    pub reads: u32,
}

/// Makes the kernel's tables equal to the wanted ones, with the smallest change.
///
/// Reads the wanted tables, compares them, and applies the difference to the generation that was read. If
/// another program commits in the meantime, the kernel refuses the transaction, and the tables are read and
/// compared again, at most eight times. If the kernel refuses the change itself, the tables that it concerns
/// are replaced as a whole, in one transaction.
///
/// # Errors
/// As [`difference`](super::difference) and [`Transaction::apply`](crate::Transaction::apply);
/// [`Error::GenerationChanged`] if other programs keep committing. The kernel's ruleset is then unchanged,
/// unless a transaction had to be split ([`Applied::batches`](crate::Applied::batches)).
pub fn sync(
    transport: &mut (impl Transport + ?Sized),
    wanted: &[TableContent],
    options: &Options<'_>,
) -> Result<Synced, Error> {
    retried(|| {
        let ruleset = read(transport, wanted.iter().map(|content| &content.table.id))?;
        Ok(send(transport, wanted, &ruleset, options)?)
    })
    .map_err(|stop| match stop {
        Stop::Edit(error) | Stop::Sync(error) => error,
    })
}

/// Reads tables, lets `edit` change them, and makes the kernel's equal to the result, as [`sync`] does.
///
/// If another program commits in the meantime, the tables are read again and `edit` is called again, so that
/// it always decides about what the kernel has. `edit` gets the tables that exist, and may add others. A table
/// that it takes away is one that is not wanted, which [`Options::keep`] decides about.
///
/// ```
/// # use sluicegate_nftables::fake::Fake;
/// use sluicegate_nftables::lang::{Match, Payload, Verdict};
/// use sluicegate_nftables::{Chain, Error, Family, Port, Table, TableContent, TableId, reconcile};
///
/// # let mut socket = Fake::new();
/// let input = TableId::new(Family::INET, "guard".parse()?).chain("input".parse()?);
/// let tables = [input.table.clone()];
/// for port in [22, 443, 22] {
///     let synced = reconcile::sync_with(&mut socket, &tables, &Default::default(), |tables| {
///         if tables.is_empty() {
///             tables.push(TableContent::new(Table::new(input.table.clone())));
///         }
///         tables[0].ensure_chain(Chain::new(input.clone()));
///         let accept = input.rule().then(Match::new(Payload::TCP_DPORT, Port(port))).then(Verdict::Accept);
///         tables[0].ensure_rule(accept)?;
///         Ok::<_, Error>(())
///     })?;
///     println!("{} rules added", synced.difference.added.rules);
/// }
/// # let rules = sluicegate_nftables::read::rules(&mut socket, &tables[0])?;
/// # assert_eq!(rules.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`sync`], and what `edit` returns; then nothing is sent.
pub fn sync_with<E: From<Error>>(
    transport: &mut (impl Transport + ?Sized),
    tables: &[TableId],
    options: &Options<'_>,
    mut edit: impl FnMut(&mut Vec<TableContent>) -> Result<(), E>,
) -> Result<Synced, E> {
    retried(|| {
        let ruleset = read(transport, tables)?;
        let is_read =
            |table: &&read::Table| tables.iter().any(|id| id.family == table.family && id.name == table.name);
        let mut wanted: Vec<_> =
            ruleset.tables.iter().filter(is_read).map(|table| ruleset.content_of(table)).collect();
        edit(&mut wanted).map_err(Stop::Edit)?;
        Ok(send(transport, &wanted, &ruleset, options)?)
    })
    .map_err(|stop| match stop {
        Stop::Edit(error) => error,
        Stop::Sync(error) => error.into(),
    })
}

/// Why a sync with changes of the caller stopped.
enum Stop<E> {
    Edit(E),
    Sync(Error),
}

impl<E> From<Error> for Stop<E> {
    fn from(error: Error) -> Self {
        Self::Sync(error)
    }
}

fn retried<E>(
    mut once: impl FnMut() -> Result<(Difference, Option<Applied>), Stop<E>>,
) -> Result<Synced, Stop<E>> {
    let mut reads = 0;
    loop {
        reads += 1;
        match once() {
            Err(Stop::Sync(error)) if error.is_generation_changed() && reads < TRIES => {}
            Err(stop) => return Err(stop),
            Ok((difference, applied)) => return Ok(Synced { difference, applied, reads }),
        }
    }
}

/// Compares, and applies the difference to the generation that was read.
fn send(
    transport: &mut (impl Transport + ?Sized),
    wanted: &[TableContent],
    ruleset: &Ruleset,
    options: &Options<'_>,
) -> Result<(Difference, Option<Applied>), Error> {
    let difference = compare(wanted, ruleset, options, &HashMap::new())?;
    if difference.is_empty() {
        return Ok((difference, None));
    }
    let error = match apply(transport, &difference) {
        Err(error @ Error::Rejected { applied: 0, .. }) => error,
        result => return result.map(|applied| (difference, Some(applied))),
    };
    let whole = refused(&error, &difference, wanted, ruleset);
    if whole.is_empty() {
        return Err(error);
    }
    let difference = compare(wanted, ruleset, options, &whole)?;
    let applied = apply(transport, &difference)?;
    Ok((difference, Some(applied)))
}

fn apply(transport: &mut (impl Transport + ?Sized), difference: &Difference) -> Result<Applied, Error> {
    let options = ApplyOptions::default().generation(difference.generation);
    difference.transaction.apply_with(transport, options)
}

/// Returns the tables of the refused operations that can be replaced as a whole; if the kernel reports no
/// operation, all of them.
fn refused(
    error: &Error,
    difference: &Difference,
    wanted: &[TableContent],
    kernel: &Ruleset,
) -> HashMap<TableId, Reason> {
    let operations = difference.transaction.operations();
    let of = |index: Option<usize>| operations.get(index?).and_then(|operation| operation.in_table());
    let about: Vec<Option<&TableId>> = error.failures().iter().map(|failure| of(failure.operation)).collect();
    let is_blamed = |id: &TableId| about.iter().any(|table| table.is_none_or(|table| table == id));
    let is_there =
        |id: &TableId| kernel.tables.iter().any(|table| table.family == id.family && table.name == id.name);
    let whole = wanted.iter().map(|content| &content.table.id).filter(|id| is_blamed(id) && is_there(id));
    whole.map(|id| (id.clone(), Reason::refused(error))).collect()
}

/// Reads these tables, and the names of all others, as of one generation.
fn read<'a>(
    transport: &mut (impl Transport + ?Sized),
    tables: impl IntoIterator<Item = &'a TableId, IntoIter: Clone>,
) -> Result<Ruleset, Error> {
    let tables = tables.into_iter();
    for _ in 0..TRIES {
        let generation = read::generation(transport)?.id;
        let mut all = Ruleset { generation, ..Ruleset::default() };
        all.tables = read::tables(transport, crate::Family::UNSPEC)?;
        for id in tables.clone() {
            if !all.tables.iter().any(|table| table.family == id.family && table.name == id.name) {
                continue;
            }
            let mut one = read::ruleset(transport, id)?;
            // The list of all tables includes it already.
            one.tables.clear();
            all.append(one);
        }
        if read::generation(transport)?.id == generation {
            return Ok(all);
        }
    }
    Err(sluicegate_netlink::Error::Interrupted(TRIES).into())
}

/// The maximum number of attempts if other programs change the ruleset in the meantime.
const TRIES: u32 = 8;
