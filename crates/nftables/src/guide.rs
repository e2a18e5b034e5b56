//! For users of other libraries: ten tasks with knftables (Go), the crate `nftables` (nftables-rs),
//! google/nftables (Go), and this crate.
//!
//! | | knftables | nftables-rs | google/nftables | this crate |
//! |---|---|---|---|---|
//! | speaks to | `nft -f -` | `nft -j -f -` | netlink | netlink |
//! | a rule is | a string | a tree of JSON | bytecode, register by register | a tree, or a string that is parsed to it |
//! | a mistake is found by | `nft`, at run time | `nft`, at run time | the kernel, at run time | the compiler, or the parser, with line and column |
//! | an error says | `nft`'s text | `nft`'s text | errno | the operation, the object, errno and what it means |
//! | without a kernel | `NewFake` | - | scripted messages | [`fake::Fake`](crate::fake::Fake), which checks as the kernel does |
//! | reads back | names, rules as text | JSON | bytecode | typed rules that print as `nft list` does |
//!
//! In the examples of this crate `kernel` is a [`Fake`](crate::fake::Fake), so that they run anywhere. In a
//! program it is a socket: `Socket::open(NetlinkFamily::NETFILTER, &Options::default())?`.
//!
//! # 1. A table and a base chain
//!
//! knftables: the interface is for one table.
//!
//! ```text
//! nft, err := knftables.New(knftables.InetFamily, "filter")
//! tx := nft.NewTransaction()
//! tx.Add(&knftables.Table{})
//! tx.Add(&knftables.Chain{
//!     Name: "input", Type: knftables.PtrTo(knftables.FilterType),
//!     Hook: knftables.PtrTo(knftables.InputHook), Priority: knftables.PtrTo(knftables.FilterPriority),
//! })
//! err = nft.Run(ctx, tx)
//! ```
//!
//! nftables-rs:
//!
//! ```text
//! let mut batch = Batch::new();
//! batch.add(NfListObject::Table(Table {
//!     family: NfFamily::INet, name: "filter".into(), ..Default::default()
//! }));
//! batch.add(NfListObject::Chain(Chain {
//!     family: NfFamily::INet, table: "filter".into(), name: "input".into(),
//!     _type: Some(NfChainType::Filter), hook: Some(NfHook::Input), prio: Some(0),
//!     policy: Some(NfChainPolicy::Drop), ..Default::default()
//! }));
//! helper::apply_ruleset(&batch.to_nftables())?;
//! ```
//!
//! google/nftables:
//!
//! ```text
//! c, err := nftables.New()
//! filter := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "filter"})
//! drop := nftables.ChainPolicyDrop
//! input := c.AddChain(&nftables.Chain{
//!     Name: "input", Table: filter, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput,
//!     Priority: nftables.ChainPriorityFilter, Policy: &drop,
//! })
//! err = c.Flush()
//! ```
//!
//! This crate, with values or with nft's own words:
//!
//! ```
//! use sluicegate_nftables::fake::Fake;
//! use sluicegate_nftables::{Chain, ChainType, Family, Hook, Policy, Priority, Table, TableId, Transaction};
//!
//! let mut kernel = Fake::new();
//! let filter = TableId::new(Family::INET, "filter".parse()?);
//! let mut tx = Transaction::new();
//! tx.add(Table::new(filter.clone()));
//! let input = filter.chain("input".parse()?);
//! tx.add(Chain::base(input, ChainType::Filter, Hook::Input, Priority::FILTER).policy(Policy::Drop));
//! tx.apply(&mut kernel)?;
//!
//! let script = "table inet filter {
//!     chain input { type filter hook input priority filter; policy drop; }
//! }";
//! assert_eq!(Transaction::parse(script)?.to_string(), tx.to_string());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 2. A rule
//!
//! knftables takes the words as nft does, and finds a mistake in them when nft does:
//!
//! ```text
//! tx.Add(&knftables.Rule{
//!     Chain: "input", Rule: knftables.Concat("tcp dport", port, "ct state new", "accept"),
//!     Comment: knftables.PtrTo("web"),
//! })
//! ```
//!
//! nftables-rs:
//!
//! ```text
//! let dport = Expression::Named(NamedExpression::Payload(Payload::PayloadField(
//!     PayloadField { protocol: "tcp".into(), field: "dport".into() })));
//! batch.add(NfListObject::Rule(Rule {
//!     family: NfFamily::INet, table: "filter".into(), chain: "input".into(), comment: Some("web".into()),
//!     expr: vec![
//!         Statement::Match(Match { left: dport, right: Expression::Number(443), op: Operator::EQ }),
//!         Statement::Accept(None),
//!     ].into(),
//!     ..Default::default()
//! }));
//! ```
//!
//! google/nftables: registers, offsets and byte order are the caller's, and so is the match of TCP that `tcp
//! dport` implies.
//!
//! ```text
//! c.AddRule(&nftables.Rule{Table: filter, Chain: input, Exprs: []expr.Any{
//!     &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
//!     &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
//!     &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
//!     &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(443)},
//!     &expr.Verdict{Kind: expr.VerdictAccept},
//! }, UserData: userdata.AppendString(nil, userdata.TypeComment, "web")})
//! ```
//!
//! This crate:
//!
//! ```
//! use sluicegate_nftables::lang::{CtState, Match, MatchOp, Payload, Verdict};
//! use sluicegate_nftables::expr::CtKey;
//! use sluicegate_nftables::{Family, Port, Rule, TableId};
//!
//! let input = TableId::new(Family::INET, "filter".parse()?).chain("input".parse()?);
//! let rule = input
//!     .rule()
//!     .then(Match::new(Payload::TCP_DPORT, Port(443)))
//!     .then(Match::new(CtKey::STATE, CtState::NEW))
//!     .then(Verdict::Accept)
//!     .comment("web".parse()?);
//! assert_eq!(rule, Rule::parse(&input, "tcp dport https ct state new accept comment \"web\"")?);
//!
//! let error = Rule::parse(&input, "tcp dprot 443 accept").unwrap_err();
//! assert!(error.to_string().contains("did you mean `dport`?"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 3. A set, and a rule that asks it
//!
//! knftables:
//!
//! ```text
//! tx.Add(&knftables.Set{Name: "admins", Type: "ipv4_addr"})
//! tx.Add(&knftables.Element{Set: "admins", Key: []string{"10.0.0.1"}, Comment: knftables.PtrTo("alice")})
//! tx.Add(&knftables.Rule{Chain: "input", Rule: "ip saddr @admins accept"})
//! ```
//!
//! nftables-rs:
//!
//! ```text
//! batch.add(NfListObject::Set(Box::new(Set {
//!     family: NfFamily::INet, table: "filter".into(), name: "admins".into(),
//!     set_type: SetTypeValue::Single(SetType::Ipv4Addr), ..Default::default()
//! })));
//! batch.add(NfListObject::Element(Element {
//!     family: NfFamily::INet, table: "filter".into(), name: "admins".into(),
//!     elem: vec![Expression::String("10.0.0.1".into())].into(),
//! }));
//! // and a rule with `right: Expression::String("@admins".into())`
//! ```
//!
//! google/nftables:
//!
//! ```text
//! admins := &nftables.Set{Table: filter, Name: "admins", KeyType: nftables.TypeIPAddr}
//! err = c.AddSet(admins, []nftables.SetElement{{Key: net.ParseIP("10.0.0.1").To4(), Comment: "alice"}})
//! // and a rule: Meta NFPROTO, Cmp, Payload of the source address, then
//! //     &expr.Lookup{SourceRegister: 1, SetName: admins.Name, SetID: admins.ID}
//! ```
//!
//! This crate:
//!
//! ```
//! use sluicegate_nftables::fake::Fake;
//! use sluicegate_nftables::lang::{Expression, Match, Payload, Verdict};
//! use sluicegate_nftables::{DataType, Element, Family, Set, TableId, Transaction};
//!
//! let mut kernel = Fake::new();
//! Transaction::parse("table inet filter { chain input { }; }")?.apply(&mut kernel)?;
//!
//! let filter = TableId::new(Family::INET, "filter".parse()?);
//! let admins = filter.set("admins".parse()?);
//! let mut tx = Transaction::new();
//! tx.add(Set::new(admins.clone(), DataType::IPV4_ADDR));
//! let alice = std::net::Ipv4Addr::new(10, 0, 0, 1);
//! tx.add_element(&admins, Element::new(alice).comment("alice".parse()?));
//! let is_admin = Match::new(Payload::IP_SADDR, Expression::Named(admins.name.clone()));
//! tx.add(filter.chain("input".parse()?).rule().then(is_admin).then(Verdict::Accept));
//! tx.apply(&mut kernel)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 4. Prefixes and ranges in a set
//!
//! knftables: `Flags: []knftables.SetFlag{knftables.IntervalFlag}`, and keys such as `"10.0.0.0/8"`.
//!
//! nftables-rs: `flags: Some([SetFlag::Interval].into())`, and elements such as
//! `Expression::Named(NamedExpression::Prefix(..))`.
//!
//! google/nftables: `Interval: true`, and each interval as two elements, which the caller calculates:
//!
//! ```text
//! c.SetAddElements(s, []nftables.SetElement{
//!     {Key: net.ParseIP("10.0.0.0").To4()}, {Key: net.ParseIP("11.0.0.0").To4(), IntervalEnd: true},
//! })
//! ```
//!
//! This crate:
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use sluicegate_nftables::fake::Fake;
//! use sluicegate_nftables::{DataType, Element, Family, Set, SetFlags, TableId, Transaction};
//!
//! let mut kernel = Fake::new();
//! let local = TableId::new(Family::IP, "t".parse()?).set("local".parse()?);
//! let mut tx = Transaction::parse("add table ip t")?;
//! tx.add(Set::new(local.clone(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
//! tx.add_element(&local, Element::range(Ipv4Addr::new(10, 0, 0, 0), Ipv4Addr::new(10, 255, 255, 255)));
//! assert!(tx.to_string().ends_with("add element ip t local { 10.0.0.0/8 }\n"));
//! tx.apply(&mut kernel)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 5. A map from addresses and ports to chains
//!
//! knftables:
//!
//! ```text
//! tx.Add(&knftables.Map{Name: "services", Type: "ipv4_addr . inet_service : verdict"})
//! tx.Add(&knftables.Element{
//!     Map: "services", Key: []string{"10.96.0.1", "443"}, Value: []string{"goto api"},
//! })
//! tx.Add(&knftables.Rule{Chain: "input", Rule: "ip daddr . tcp dport vmap @services"})
//! ```
//!
//! nftables-rs: `NfListObject::Map(Map { map: SetTypeValue::Single("verdict".into()), .. })`, elements as
//! lists of a key and a verdict, and `Statement::VerdictMap(VerdictMap { key: Concat of two payloads, data:
//! "@services" })`.
//!
//! google/nftables: `KeyType: nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)`,
//! `IsMap: true`, `Concatenation: true`, `DataType: nftables.TypeVerdict`; the key is 8 bytes that the
//! caller pads, and the rule loads both parts into registers 1 and 9 before its `Lookup`.
//!
//! This crate (the values are in the example of the [crate]):
//!
//! ```
//! use sluicegate_nftables::{Transaction, fake::Fake};
//!
//! let mut kernel = Fake::new();
//! let tx = Transaction::parse(
//!     "table ip proxy {
//!         chain api { dnat to 192.0.2.1:6443; }
//!         map services {
//!             type ipv4_addr . inet_service : verdict
//!             elements = { 10.96.0.1 . 443 : goto api }
//!         }
//!         chain output { type nat hook output priority -100; ip daddr . tcp dport vmap @services; }
//!     }",
//! );
//! // The parser says that a port is only translated where the rule knows the protocol.
//! assert!(tx.unwrap_err().to_string().contains("needs a match on the transport protocol"));
//! let tx = Transaction::parse(
//!     "table ip proxy {
//!         chain api { meta l4proto tcp dnat to 192.0.2.1:6443; }
//!         map services {
//!             type ipv4_addr . inet_service : verdict
//!             elements = { 10.96.0.1 . 443 : goto api }
//!         }
//!         chain output { type nat hook output priority -100; ip daddr . tcp dport vmap @services; }
//!     }",
//! )?;
//! tx.apply(&mut kernel)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 6. What is in a chain, replaced in one step
//!
//! knftables: `tx.Add(&knftables.Chain{Name: "c"})`, `tx.Flush(&knftables.Chain{Name: "c"})`, then the
//! rules.
//!
//! nftables-rs: `batch.add_cmd(NfCmd::Flush(FlushObject::Chain(..)))`, then the rules.
//!
//! google/nftables: `c.FlushChain(chain)`, `c.AddRule(..)`, and one `c.Flush()` for all.
//!
//! This crate does the same, or finds the smallest change by itself ([`reconcile`](crate::reconcile)):
//!
//! ```
//! use sluicegate_nftables::{Rule, Transaction, fake::Fake};
//! # let mut kernel = Fake::new();
//! # Transaction::parse("table ip t { chain c { drop; }; }")?.apply(&mut kernel)?;
//!
//! let chain = sluicegate_nftables::TableId::new("ip".parse()?, "t".parse()?).chain("c".parse()?);
//! let mut tx = Transaction::new();
//! tx.flush(chain.clone());
//! for port in [80, 443] {
//!     tx.add(Rule::parse(&chain, &format!("tcp dport {port} accept"))?);
//! }
//! tx.apply(&mut kernel)?;
//! assert_eq!(kernel.ruleset().rules.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 7. A rule deleted
//!
//! All of them need its handle. knftables: `nft.ListRules(ctx, "c")`, then `tx.Delete(rule)`. nftables-rs:
//! `helper::get_current_ruleset()`, then `batch.delete(NfListObject::Rule(..))` with the handle.
//! google/nftables: `c.GetRules(table, chain)`, then `c.DelRule(rule)`.
//!
//! This crate: [`Transaction::apply`](crate::Transaction::apply) returns the handles of what it added.
//!
//! ```
//! use sluicegate_nftables::{RuleId, Transaction, fake::Fake, read};
//! # let mut kernel = Fake::new();
//! # Transaction::parse("table ip t { chain c { drop; }; }")?.apply(&mut kernel)?;
//!
//! let chain = sluicegate_nftables::TableId::new("ip".parse()?, "t".parse()?).chain("c".parse()?);
//! let rules = read::chain_rules(&mut kernel, &chain)?;
//! let mut tx = Transaction::new();
//! tx.delete(RuleId { chain, handle: rules[0].handle });
//! tx.apply(&mut kernel)?;
//! assert!(kernel.ruleset().rules.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 8. What there is, listed
//!
//! knftables: `nft.List(ctx, "chains")` for names, `nft.ListRules` for rules as text, `nft.ListElements(ctx,
//! "map", "services")` for elements as strings. nftables-rs: `helper::get_current_ruleset()` for the whole
//! ruleset as JSON. google/nftables: `c.ListTables()`, `c.GetRules(..)` for bytecode,
//! `c.GetSetElements(set)` for bytes.
//!
//! This crate:
//!
//! ```
//! use sluicegate_nftables::lang::{Match, Payload};
//! use sluicegate_nftables::{Family, Port, Transaction, fake::Fake, read};
//! # let mut kernel = Fake::new();
//! # Transaction::parse("table ip t { chain c { tcp dport 22 accept; }; }")?.apply(&mut kernel)?;
//!
//! let tables = read::ruleset(&mut kernel, Family::IP)?.content();
//! let (chain, rules) = &tables[0].chains[0];
//! assert_eq!(chain.id.name.as_str(), "c");
//! assert_eq!(rules[0].statements[0], Match::new(Payload::TCP_DPORT, Port(22)).into());
//! assert_eq!(tables[0].to_string(), "table ip t {\n\tchain c {\n\t\ttcp dport 22 accept\n\t}\n}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 9. An error understood
//!
//! knftables: `knftables.IsNotFound(err)` and `IsAlreadyExists(err)`, for the transaction as a whole.
//! nftables-rs: `NftablesError::NftFailed { stderr, .. }`. google/nftables: `errors.Is(err, unix.ENOENT)`,
//! for the batch as a whole.
//!
//! This crate:
//!
//! ```
//! use sluicegate_nftables::{Transaction, fake::Fake};
//! let mut kernel = Fake::new();
//!
//! let tx = Transaction::parse("add table ip t\nadd chain ip t c\nadd rule ip t c jump nowhere")?;
//! let error = tx.apply(&mut kernel).unwrap_err();
//! assert!(error.is_not_found());
//! // The third operation, and nothing was applied.
//! assert_eq!(error.failures()[0].operation, Some(2));
//! assert!(kernel.ruleset().tables.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # 10. A test without a kernel
//!
//! knftables: `knftables.NewFake(family, table)` in place of `New`, and `fake.Dump()`. nftables-rs: compare
//! the JSON. google/nftables: `nftables.New(nftables.WithTestDial(..))`, which compares bytes.
//!
//! This crate: the fake is a [`Transport`](crate::netlink::Transport) as a socket is, so that the code under
//! test is the same down to the bytes. It refuses what the kernel refuses, and can be told to fail.
//!
//! ```
//! use sluicegate_nftables::netlink::Transport;
//! use sluicegate_nftables::{Error, Transaction, fake::Fake};
//!
//! fn open_port(kernel: &mut impl Transport, port: u16) -> Result<(), Error> {
//!     let script = format!("table inet fw {{ chain in {{ tcp dport {port} accept; }}; }}");
//!     Transaction::parse(&script).expect("a port is a number").apply(kernel).map(drop)
//! }
//!
//! let mut kernel = Fake::new();
//! open_port(&mut kernel, 8443)?;
//! let listed = kernel.ruleset().content()[0].to_string();
//! assert!(listed.contains("tcp dport 8443 accept"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Written from the documentation and the sources of knftables 0.0.22, `nftables` 0.6.3 and google/nftables
//! 0.3; their examples are text that nothing here compiles.
