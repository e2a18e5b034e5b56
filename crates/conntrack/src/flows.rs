//! Flows as they come from the kernel, one after the other.

use std::collections::VecDeque;

use sluicegate_netlink::{Dumping, Transport};

use crate::client::{Table, refuses_filter};
use crate::{Client, Error, Filter, Flow};

/// The flows that match a filter, as [`Client::flows`] returns them: read from the kernel as they are asked
/// for, so that a table of millions needs no more memory than one datagram.
///
/// After an error it ends. When it is dropped early, the next command reads the rest away.
#[derive(Debug)]
pub struct Flows<'c, T> {
    client: &'c mut Client<T>,
    table: Table,
    filter: Filter,
    /// Whether the kernel was asked to compare as well.
    narrow: bool,
    dump: Option<Dumping>,
    /// Those that came and were not yet asked for.
    ready: VecDeque<Flow>,
    has_some: bool,
}

impl<'c, T: Transport> Flows<'c, T> {
    pub(crate) fn new(client: &'c mut Client<T>, table: Table, filter: &Filter) -> Result<Self, Error> {
        filter.check()?;
        let narrow = table == Table::Conntrack;
        let dump = Some(client.start_list(table, filter, narrow)?);
        Ok(Self { client, table, filter: *filter, narrow, dump, ready: VecDeque::new(), has_some: false })
    }

    /// Reads a datagram. Returns false at the end.
    fn read(&mut self) -> Result<bool, Error> {
        let Some(dump) = &mut self.dump else { return Ok(false) };
        let (filter, ready, has_some) = (&self.filter, &mut self.ready, &mut self.has_some);
        let read = dump.read(self.client.transport(), |message| {
            *has_some = true;
            let flow = Flow::decode(message)?;
            if filter.matches(&flow) {
                ready.push_back(flow);
            }
            Ok(())
        });
        match read {
            // A kernel that supports filters, but not this one: compare all flows here.
            Err(error) if self.narrow && !self.has_some && refuses_filter(&error) => {
                self.narrow = false;
                self.dump = Some(self.client.start_list(self.table, &self.filter, false)?);
                Ok(true)
            }
            read => read.map_err(Error::of("list")),
        }
    }
}

impl<T: Transport> Iterator for Flows<'_, T> {
    type Item = Result<Flow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && self.dump.is_some() {
            match self.read() {
                Ok(true) => {}
                Ok(false) => self.dump = None,
                Err(error) => {
                    self.dump = None;
                    return Some(Err(error));
                }
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl<T: Transport> std::iter::FusedIterator for Flows<'_, T> {}
