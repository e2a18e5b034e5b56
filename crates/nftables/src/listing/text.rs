//! Prints a table as `nft -s list ruleset` does.

use std::collections::HashMap;
use std::fmt;

use crate::datatype::DataType;
use crate::listing::TableContent;
use crate::name::Name;
use crate::object::set::TypeLine;
use crate::object::*;
use crate::text::print::TypedUpdate;
use crate::tree::Statement;
use crate::wording::{ListOptions, Wording, Words};

impl TableContent {
    /// Prints the table as `nft list ruleset` does, with these options and names.
    ///
    /// [`read::list_options`](crate::read::list_options) reads those of the machine that it runs on.
    pub fn display<'a>(&'a self, options: &'a ListOptions) -> impl fmt::Display + 'a {
        Listing { content: self, with: Wording::new(options) }
    }
}

/// Prints as `nft -s list ruleset` does in the time zone UTC, without names that nft looks up on the machine.
impl fmt::Display for TableContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(&ListOptions::default()).fmt(f)
    }
}

/// A table with the options for printing it.
#[derive(Clone, Copy)]
struct Listing<'a> {
    content: &'a TableContent,
    with: Wording<'a>,
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableContent { table, objects, sets, flowtables, chains, handles } = self.content;
        writeln!(f, "table {} {{{}", table.id, self.handle(Some(handles.table)))?;
        if let Some(comment) = &table.comment {
            writeln!(f, "\tcomment {comment}")?;
        }
        let flags = table.flag_names();
        if !flags.is_empty() {
            writeln!(f, "\tflags {}", flags.join(","))?;
        }
        let mut blocks = Vec::new();
        blocks.extend(objects.iter().map(|object| self.object(object)));
        blocks.extend(sets.iter().map(|(set, elements)| self.set(set, elements)));
        blocks.extend(flowtables.iter().map(|flowtable| self.flowtable(flowtable)));
        let sets = sets.iter().map(|(set, _)| (&set.id.name, set)).collect();
        blocks.extend(chains.iter().map(|(chain, rules)| self.chain(chain, rules, &sets)));
        if !flags.is_empty() && !blocks.is_empty() {
            writeln!(f)?;
        }
        writeln!(f, "{}}}", blocks.join("\n"))
    }
}

impl Listing<'_> {
    /// Returns the handle as nft prints it after the start of a block or the end of a rule, if handles are
    /// requested.
    fn handle(&self, handle: Option<u64>) -> String {
        let said = handle.filter(|_| self.with.options.handles);
        said.map(|handle| format!(" # handle {handle}")).unwrap_or_default()
    }

    fn block(&self, title: &str, handle: Option<&u64>, lines: &[String]) -> String {
        let mut text = format!("\t{title} {{{}\n", self.handle(handle.copied()));
        for line in lines {
            text.push_str("\t\t");
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("\t}\n");
        text
    }

    fn object(&self, object: &StatefulObject) -> String {
        let mut lines: Vec<_> = object.comment.iter().map(|comment| format!("comment {comment}")).collect();
        let properties = object.config.properties(true, self.with);
        lines.extend(properties.iter().map(|line| indented(line)));
        let ObjectId { kind, name, .. } = &object.id;
        let handle = self.content.handles.objects.get(&(*kind, name.clone()));
        self.block(&format!("{kind} {name}"), handle, &lines)
    }

    fn set(&self, set: &Set, elements: &[Element]) -> String {
        let mut lines = vec![TypeLine(set).to_string()];
        let mut declared = set.clone();
        if set.flags.contains(SetFlags::CONSTANT) {
            // nft does not list the size of such a set: it is the number of its elements.
            (declared.size, declared.policy) = (None, None);
        }
        lines.extend(declared.properties(self.with));
        if !elements.is_empty() {
            let per_line = match set.key.parts().as_slice() {
                [part] => per_line(part.data_type()),
                _ => 1,
            };
            let with = set.worded_elements(self.with);
            let texts: Vec<_> = elements.iter().map(|element| element.worded(with).to_string()).collect();
            let rows: Vec<_> = texts.chunks(per_line).map(|row| row.join(", ")).collect();
            lines.push(format!("elements = {{ {} }}", rows.join(",\n\t\t\t     ")));
        }
        let handle = self.content.handles.sets.get(&set.id.name);
        self.block(&format!("{} {}", set.word(), set.id.name), handle, &lines)
    }

    fn flowtable(&self, flowtable: &Flowtable) -> String {
        let name = &flowtable.id.name;
        let handle = self.content.handles.flowtables.get(name);
        self.block(&format!("flowtable {name}"), handle, &flowtable.properties(self.with))
    }

    fn chain(&self, chain: &Chain, rules: &[Rule], sets: &Sets<'_>) -> String {
        let mut lines: Vec<_> = chain.comment.iter().map(|comment| format!("comment {comment}")).collect();
        if let Some(base) = &chain.base {
            let header = base.header(chain.id.table.family, self.with);
            let policy = base.policy.map(|policy| format!(" policy {policy};")).unwrap_or_default();
            let flags = if base.offload { " flags offload;" } else { "" };
            lines.push(format!("{header};{policy}{flags}"));
        }
        lines.extend(rules.iter().map(|rule| self.rule(rule, sets)));
        let name = &chain.id.name;
        self.block(&format!("chain {name}"), self.content.handles.chains.get(name), &lines)
    }

    /// Returns the text of a rule; constants that it adds to sets and maps are printed by the type of the
    /// set.
    fn rule(&self, rule: &Rule, sets: &Sets<'_>) -> String {
        let keys = |name: &Name| sets.get(name).map(|set| set.key.parts());
        let values = |name: &Name| match sets.get(name)?.data.as_ref()? {
            SetData::Value(of) => Some(of.parts()),
            _ => None,
        };
        let word = |statement: &Statement| match statement {
            Statement::Set(update) => {
                let keys = keys(&update.set).unwrap_or_default();
                let values = values(&update.set).unwrap_or_default();
                TypedUpdate(update, [&keys, &values]).worded(self.with).to_string()
            }
            other => indented(&format!("{:#}", other.worded(self.with))),
        };
        let mut words: Vec<_> = rule.statements.read().iter().map(word).collect();
        words.extend(rule.comment.iter().map(|comment| format!("comment {comment}")));
        words.join(" ") + &self.handle(rule.handle)
    }
}

/// Returns lines as those of a block; a line may end in quotes, where what follows is a part of the text.
pub(crate) fn indented(lines: &str) -> String {
    let mut quoted = false;
    let mut text = String::with_capacity(lines.len());
    for c in lines.chars() {
        quoted ^= c == '"';
        text.push(c);
        if c == '\n' && !quoted {
            text.push_str("\t\t");
        }
    }
    text
}

/// Returns how many elements nft prints on a line, by the type of the keys.
fn per_line(of: DataType) -> usize {
    match of {
        DataType::NF_PROTO
        | DataType::INTEGER
        | DataType::ARP_OP
        | DataType::INET_PROTO
        | DataType::INET_SERVICE
        | DataType::TCP_FLAG
        | DataType::DCCP_PKTTYPE
        | DataType::MARK
        | DataType::IFACE_INDEX
        | DataType::CLASSID
        | DataType::UID
        | DataType::GID
        | DataType::CT_DIR => 5,
        DataType::IPV4_ADDR | DataType::CT_STATE | DataType::CT_STATUS | DataType::PKT_TYPE => 2,
        _ => 1,
    }
}

/// The sets of the table, by name.
type Sets<'a> = HashMap<&'a Name, &'a Set>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transaction;
    use crate::fake::Fake;
    use crate::family::Family;
    use crate::tree::{Counter, Last, Quota};

    /// The text is that of nft 1.1.6 (`obj_print_data` of its `rule.c`).
    #[test]
    fn a_tunnel_is_listed_with_its_options_in_lines_of_their_own() {
        let mut tunnel = Tunnel::v4(10, [192, 168, 2, 10].into(), [192, 168, 2, 11].into());
        tunnel.ttl = 10;
        tunnel.options = Some(TunnelOptions::Erspan1 { index: 2 });
        let table = TableId::new(Family::NETDEV, Name::from_kernel("x"));
        let config = ObjectConfig::from(tunnel);
        let object = StatefulObject::new(table.object(config.kind(), Name::from_kernel("y")), config);
        let content = TableContent {
            table: Table::new(table),
            objects: Vec::new(),
            sets: Vec::new(),
            flowtables: Vec::new(),
            chains: Vec::new(),
            handles: crate::Handles::default(),
        };
        let listing = Listing { content: &content, with: Wording::SCRIPT };
        assert_eq!(
            listing.object(&object),
            "\ttunnel y {\n\t\tid 10\n\t\tip saddr 192.168.2.10\n\t\tip daddr 192.168.2.11\n\t\tttl 10\n\
             \t\terspan {\n\t\t\tversion 1\n\t\t\tindex 2\n\t\t}\n\t}\n"
        );
    }

    /// The text of `last` is that of nft 1.1.6 (`last_stmt_print` of its `statement.c`); the rest is compared
    /// with nft by other tests.
    #[test]
    fn state_is_said_where_it_is_asked_for() {
        let chain = TableId::new(Family::IP, Name::from_kernel("x")).chain(Name::from_kernel("y"));
        let last = |seconds| Last { used: Some(std::time::Duration::from_secs(seconds)) };
        let mut transaction = Transaction::new();
        transaction.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
        transaction.add(chain.rule().then(Counter { packets: 3, bytes: 400 }).then(last(62)));
        transaction.add(chain.rule().then(Quota { bytes: 1 << 20, used: 7, over: true }));
        transaction.add(chain.rule().then(Counter::default()).then(Last::default()));
        let mut fake = Fake::new();
        transaction.apply(&mut fake).expect("the kernel takes it");
        let content = fake.ruleset().content().remove(0);
        let rules = |options: &ListOptions| -> Vec<String> {
            let text = content.display(options).to_string();
            text.lines().filter_map(|line| line.strip_prefix("\t\t")).map(str::to_owned).collect()
        };
        let mut options = ListOptions::default();
        assert_eq!(rules(&options), ["counter last", "quota over 1 mbytes", "counter last"]);
        options.state = true;
        let said = rules(&options);
        assert_eq!(
            said[1..],
            ["quota over 1 mbytes used 7 bytes", "counter packets 0 bytes 0 last used never"]
        );
        assert_eq!(said[0], "counter packets 3 bytes 400 last used 1m2s");
        options.handles = true;
        assert_eq!(rules(&options)[1], "quota over 1 mbytes used 7 bytes # handle 3");
    }
}
