//! Chains and flowtables: hooks, priorities, devices.

use crate::datatype::DataType;
use crate::family::Family;
use crate::name::{Comment, InterfaceName};
use crate::object::{
    BaseChain, Chain, ChainId, ChainType, Flowtable, FlowtableFlags, FlowtableId, Hook, Policy, Priority,
};
use crate::sort;
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::parser::{Parsed, Parser, unquoted};
use crate::text::parse::suggest::nearest;
use crate::tree::Value;

/// The properties of a chain's block, without its rules.
#[derive(Debug, Default)]
pub(crate) struct ChainBlock {
    base: Option<BaseChain>,
    /// Where its hook is said.
    hook: Option<Span>,
    policy: Option<Policy>,
    offload: bool,
    comment: Option<Comment>,
    /// Devices without a hook, of a chain that is there already.
    pub(crate) devices: Option<Vec<InterfaceName>>,
}

impl ChainBlock {
    /// The chain that the block describes; `None` if it names devices that have no hook.
    pub(crate) fn chain(self, id: ChainId) -> Option<Chain> {
        let mut base = self.base.map(|base| BaseChain { policy: self.policy, offload: self.offload, ..base });
        if let Some(devices) = self.devices {
            // Behind `type`, they are those that the line of the hook has not named.
            base.as_mut().filter(|base| base.devices.is_empty())?.devices = devices;
        }
        let policy = if base.is_none() { self.policy } else { None };
        Some(Chain { id, base, policy, comment: self.comment, counter: None })
    }

    /// The devices that it names.
    pub(crate) fn into_devices(self) -> Vec<InterfaceName> {
        self.devices.or(self.base.map(|base| base.devices)).unwrap_or_default()
    }

    fn is_base(&self) -> bool {
        self.base.is_some()
    }
}

impl Parser<'_, '_> {
    /// Parses one line of a chain's block that is not a rule; returns whether there was one.
    pub(crate) fn chain_property(&mut self, block: &mut ChainBlock) -> Parsed<bool> {
        let start = self.token.span;
        match self.word() {
            "type" => {
                if block.is_base() {
                    return Err(Problem::new(start, "this chain has a type and a hook already"));
                }
                block.base = Some(self.hook_line()?);
                block.hook = Some(self.since(start));
            }
            "policy" => {
                self.next();
                if block.policy.is_some() {
                    return Err(Problem::new(start, "this chain has a policy already"));
                }
                let policies = [("accept", Policy::Accept), ("drop", Policy::Drop)];
                block.policy = Some(match self.is(Kind::Dollar) {
                    true => self.variable(|parser| parser.one_of_quoted(&policies))?,
                    false => self.one_of(&policies)?,
                });
            }
            "flags" => {
                self.next();
                self.want_word("offload")?;
                block.offload = true;
            }
            "comment" => {
                self.next();
                if block.comment.is_some() {
                    return Err(Problem::new(start, "this chain has a comment already"));
                }
                block.comment = Some(self.comment()?);
            }
            "device" | "devices" if self.second().kind != Kind::Dot => block.devices = Some(self.devices()?),
            _ => return Ok(false),
        }
        self.separator()?;
        Ok(true)
    }

    /// The chain of a block that has been read.
    pub(crate) fn chain_of(&self, block: ChainBlock, id: ChainId, start: Span) -> Parsed<Chain> {
        let span = block.hook.unwrap_or(start);
        let chain = block.chain(id).ok_or_else(|| {
            Problem::new(start, "these devices have no hook")
                .help("say `type filter hook ingress devices = { ... } priority 0;`")
        })?;
        let checked = chain.base.as_ref().map_or(Ok(()), |base| base.check_written(chain.id.table.family));
        checked.map_err(|error| self.refused(error, span))?;
        Ok(chain)
    }

    /// A word that may be in quotes.
    fn one_of_quoted<T: Copy>(&mut self, words: &[(&str, T)]) -> Parsed<T> {
        let text = unquoted(self.text());
        match words.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => {
                self.next();
                Ok(*value)
            }
            None => self.one_of(words),
        }
    }

    /// `type filter hook input priority 0`
    fn hook_line(&mut self) -> Parsed<BaseChain> {
        self.next();
        let kind = self.one_of(&[("filter", 0), ("nat", 1), ("route", 2)])?;
        let kind = [ChainType::Filter, ChainType::Nat, ChainType::Route].into_iter().nth(kind);
        self.want_word("hook")?;
        let family = self.family();
        let (hook, _) = self.hook(family)?;
        let devices = self.devices()?;
        let priority = self.priority(family, hook)?;
        let kind = kind.unwrap_or(ChainType::Filter);
        Ok(BaseChain { kind, hook, priority, policy: None, devices, offload: false })
    }

    fn hook(&mut self, family: Family) -> Parsed<(Hook, Span)> {
        let span = self.token.span;
        let names = Hook::ALL.iter().map(|hook| (hook.to_string(), *hook)).collect::<Vec<_>>();
        let word = self.word();
        let Some((_, hook)) = names.iter().find(|(name, _)| name == word) else {
            return Err(self
                .expected("the name of a hook")
                .meant(nearest(word, names.iter().map(|(name, _)| name.as_str()))));
        };
        self.next();
        if hook.number(family).is_none() {
            return Err(Problem::new(span, format!("family {family} has no hook `{hook}`")));
        }
        Ok((*hook, span))
    }

    /// `priority filter - 10`
    pub(crate) fn priority(&mut self, family: Family, hook: Hook) -> Parsed<Priority> {
        self.want_word("priority")?;
        match self.is(Kind::Dollar) {
            true => self.variable(|parser| parser.priority_value(family, hook)),
            false => self.priority_value(family, hook),
        }
    }

    fn priority_value(&mut self, family: Family, hook: Hook) -> Parsed<Priority> {
        let start = self.token.span;
        let number = |parser: &mut Self, negative: bool| -> Parsed<i32> {
            let span = parser.token.span;
            let number = i64::try_from(parser.number("a number")?).unwrap_or(i64::MAX);
            i32::try_from(if negative { -number } else { number })
                .map_err(|_| Problem::new(span, "expected a priority of 32 bits"))
        };
        match self.token.kind {
            Kind::Number(_) => return number(self, false).map(Priority),
            Kind::Dash => {
                self.next();
                return number(self, true).map(Priority);
            }
            Kind::Quoted => {
                // The value of a variable: `"filter - 10"`.
                let span = self.token.span;
                let inner = Span { start: span.start + 1, end: span.end - 1 };
                self.next();
                let lexer = self.lexer_at(inner);
                return self.inside(lexer, self.moment, |parser| parser.priority_value(family, hook));
            }
            Kind::Word => {}
            _ => return Err(self.expected("a priority: a number, or a name such as `filter`")),
        }
        let name = self.word();
        let Some(Priority(base)) = Priority::from_name(name, family, hook) else {
            let known = ["raw", "mangle", "dstnat", "filter", "security", "srcnat", "out"];
            return Err(match known.contains(&name) {
                true => Problem::new(
                    start,
                    format!("the priority `{name}` is not for hook {hook} of family {family}"),
                ),
                false => self.expected("the name of a priority").meant(nearest(name, known)),
            });
        };
        self.next();
        let sign = match self.token.kind {
            Kind::Plus => false,
            Kind::Dash => true,
            _ => return Ok(Priority(base)),
        };
        self.next();
        let sum = base.checked_add(number(self, sign)?);
        sum.map(Priority).ok_or_else(|| Problem::new(self.since(start), "expected a priority of 32 bits"))
    }

    /// `device "eth0"` or `devices = { "eth0", "eth1" }`; none where neither is there. Their order means
    /// nothing, so they come in the order in which nft lists them.
    pub(crate) fn devices(&mut self) -> Parsed<Vec<InterfaceName>> {
        if self.eat_word("device") {
            return Ok(vec![match self.is(Kind::Dollar) {
                true => self.variable(Self::device_name)?,
                false => self.device_name()?,
            }]);
        }
        let mut devices = Vec::new();
        if self.eat_word("devices") {
            self.want(Kind::Assign, "`=`")?;
            // A variable may be one device, without braces.
            if self.is(Kind::Dollar) && self.variable_starts_with() != Some(Kind::OpenBrace) {
                return Ok(vec![self.variable(Self::device_name)?]);
            }
            self.set_of(&mut |parser| {
                devices.push(match parser.is(Kind::Dollar) {
                    true => parser.variable(Self::device_name)?,
                    false => parser.device_name()?,
                });
                Ok(())
            })?;
        }
        sort::by(&mut devices, Ord::cmp);
        Ok(devices)
    }

    fn device_name(&mut self) -> Parsed<InterfaceName> {
        let token = self.token;
        match self.constant(Some(DataType::IFNAME.into()))? {
            crate::tree::Expression::Value(Value::Interface(name)) => Ok(name),
            _ => Err(self.found_instead("the name of a device", token)),
        }
    }

    /// The block of a flowtable.
    pub(crate) fn flowtable_block(&mut self, id: FlowtableId) -> Parsed<Flowtable> {
        let start = self.token.span;
        let (mut priority, mut devices, mut flags) = (None, Vec::new(), FlowtableFlags::empty());
        let noted = self.problems.len();
        self.block(&mut |parser| {
            match parser.word() {
                "hook" => {
                    parser.next();
                    let (hook, span) = parser.hook(Family::NETDEV)?;
                    if hook != Hook::Ingress {
                        return Err(Problem::new(span, format!("expected `ingress`, found `{hook}`")));
                    }
                    priority = Some(parser.priority(Family::NETDEV, hook)?);
                }
                "devices" => devices = parser.devices()?,
                "counter" => {
                    parser.next();
                    flags |= FlowtableFlags::COUNTER;
                    return Ok(());
                }
                "flags" => {
                    parser.next();
                    parser.want_word("offload")?;
                    flags |= FlowtableFlags::OFFLOAD;
                }
                _ => return Err(parser.expected_one_of(&["hook", "devices", "counter", "flags"])),
            }
            parser.separator()
        })?;
        match priority {
            Some(priority) => Ok(Flowtable { id, priority, devices, flags }),
            // For a flowtable that exists already, nft omits the hook when it changes the devices.
            None if !devices.is_empty() => Ok(Flowtable { id, priority: Priority(0), devices, flags }),
            None => Err(Problem::new(start, "a flowtable needs a hook and a priority")
                .help("say `hook ingress priority filter;`")
                .follows(self.problems.len() > noted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Transaction;

    fn read(text: &str) -> String {
        match Transaction::parse(&format!("add {text}")) {
            Ok(transaction) => transaction.to_string().trim_end().trim_start_matches("add ").to_owned(),
            Err(error) => {
                let mistake = error.mistakes.first().unwrap();
                mistake.help.iter().fold(mistake.message.clone(), |message, help| message + " / " + help)
            }
        }
    }

    fn priority(priority: &str) -> String {
        let chain = read(&format!("chain ip t c {{ type nat hook prerouting priority {priority}; }}"));
        chain.rsplit("priority ").next().unwrap_or_default().trim_end_matches(" ; }").to_owned()
    }

    #[test]
    fn priorities_are_names_and_numbers() {
        assert_eq!(priority("dstnat"), "-100");
        assert_eq!(priority("dstnat + 5"), "-95");
        assert_eq!(priority("filter - 10"), "-10");
        assert_eq!(priority("-300"), "-300");
        assert_eq!(priority("srcnat"), "`srcnat` is not for hook prerouting of family ip");
        assert_eq!(
            priority("dstnt"),
            "expected the name of a priority, found `dstnt` / did you mean `dstnat`?"
        );
        assert_eq!(priority("2147483648"), "of 32 bits");
    }

    #[test]
    fn what_is_printed_is_read() {
        for text in [
            "chain ip t c",
            "chain ip t c { policy drop ; }",
            "chain inet t c { type filter hook input priority 0 ; policy drop ; comment \"x\" ; }",
            "chain netdev t c { type filter hook ingress device \"eth0\" priority 1 ; flags offload ; }",
            "chain netdev t c { type filter hook egress devices = { \"a\", \"b\" } priority 1 ; }",
            "flowtable inet t f { hook ingress priority filter ; devices = { \"lo\" } ; flags offload ; \
                counter ; }",
        ] {
            assert_eq!(read(text), text);
        }
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        let chain = |line: &str| read(&format!("chain ip t c {{ {line} }}"));
        assert_eq!(
            chain("type filter hook input priority 0"),
            "expected `;` or the end of the line, found `}` / put a `;` before the `}`"
        );
        assert_eq!(chain("type filter hook ingress priority 0;"), "family ip has no hook `ingress`");
        assert_eq!(
            chain("type filter hook inptu priority 0;"),
            "expected the name of a hook, found `inptu` / did you mean `input`?"
        );
        assert_eq!(chain("policy accept; policy drop;"), "this chain has a policy already");
        assert!(read("flowtable ip t f { }").starts_with("a flowtable needs a hook and a priority"));
    }
}
