//! The packed form of each node of the language. Statements of low-level expressions have none.

use crate::expr::{
    CtKey, Direction, ExthdrOp, FibFlags, FibResult, InnerType, LogFlags, MetaKey, NatFlags, NumgenMode,
    ObjectKind, PayloadBase, RtKey, SocketKey, TunnelKey, XfrmKey,
};
use crate::family::Family;
use crate::key::EtherAddr;
use crate::name::{Comment, InterfaceName, Name};
use crate::tree::exthdr::Exthdr;
use crate::tree::statements::pack::{Pack, enums, flags, names, structs};
use crate::tree::{
    Binary, BinaryOp, BoundChain, BoundRule, Connlimit, Counter, Ct, Dup, Elem, Expression, Fib, Fwd, Inner,
    Ipsec, Jhash, Last, Limit, Log, Mangle, Map, Mapping, Match, MatchOp, Meter, Nat, NatTarget, Numgen,
    ObjectName, ObjectReference, Osf, Payload, PortNat, Prefix, Queue, Quota, RawPayload, Reject, Rt, SetOp,
    SetUpdate, Socket, Statement, Symhash, Synproxy, TimeUnit, Tproxy, Value, Verdict, Vmap,
};

enums! {
    Statement {
        0 Match(of), 1 Verdict(of), 2 Bound(of), 3 Vmap(of), 4 Counter(of), 5 Quota(of), 6 Limit(of),
        7 Last(of), 8 Log(of), 9 Reject(of), 10 Dnat(of), 11 Snat(of), 12 Masquerade(of), 13 Redirect(of),
        14 Tproxy(of), 15 Dup(of), 16 Fwd(of), 17 Queue(of), 18 Notrack, 19 Mangle(of), 20 Set(of),
        21 Meter(of), 22 Connlimit(of), 23 Synproxy(of), 24 FlowAdd(of), 25 Object(of), 26 ResetOption(of),
    }
    Expression {
        0 Payload(of), 1 RawPayload(of), 2 Exthdr(of), 3 Meta(of), 4 Ct(of), 5 Rt(of), 6 Socket(of),
        7 Osf(of), 8 Fib(of), 9 Numgen(of), 10 Jhash(of), 11 Symhash(of), 12 Ipsec(of), 13 Tunnel(of),
        14 Inner(of), 15 Concat(of), 16 Binary(of), 17 Map(of), 18 Value(of), 19 Prefix(of), 20 Range(of),
        21 Set(of), 22 Elem(of), 23 Named(of), 24 Any,
    }
    Value { 0 Number(of), 1 Address(of), 2 Ether(of), 3 Interface(of), 4 Text(of), 5 Bytes(of), }
    Verdict { 0 Accept, 1 Drop, 2 Continue, 3 Return, 4 Jump(to), 5 Goto(to), }
    MatchOp { 0 In, 1 Eq, 2 Neq, 3 Lt, 4 Gt, 5 Lte, 6 Gte, 7 None, }
    BinaryOp { 0 And, 1 Or, 2 Xor, 3 ShiftLeft, 4 ShiftRight, }
    TimeUnit { 0 Second, 1 Minute, 2 Hour, 3 Day, 4 Week, }
    Reject { 0 Default, 1 TcpReset, 2 Icmp(code), 3 Icmpv6(code), 4 Icmpx(code), }
    NatTarget {
        0 Address(of), 1 Port(of), 2 AddressPort(address, port), 3 Concat(of), 4 Interval(of),
        5 ConcatInterval(of),
    }
    SetOp { 0 Add, 1 Update, 2 Delete, }
    ObjectName { 0 Named(name), 1 Map(key, map), 2 Among(key, names), }
}

structs! {
    Match { left, op, right }
    BoundChain { goto, rules }
    BoundRule { statements, comment }
    Vmap { key, map }
    Counter { packets, bytes }
    Quota { bytes, used, over }
    Limit { rate, per, burst, bytes, over }
    Last { used }
    Log { prefix, level, flags, group, snaplen, queue_threshold }
    Nat { family, to, flags }
    PortNat { port, flags }
    Tproxy { family, address, port }
    Dup { address, device }
    Fwd { device, address }
    Queue { to, bypass, fanout }
    Mangle { key, value }
    SetUpdate { op, set, key, value, timeout, statements }
    Meter { name, size, key, timeout, statements }
    Connlimit { count, over }
    Synproxy { mss, wscale, timestamp, sack_perm }
    ObjectReference { kind, object }

    RawPayload { base, offset, bits }
    Ct { key, direction, family }
    Rt { key }
    Socket { key, level }
    Osf { ttl, version }
    Fib { flags, result, check }
    Numgen { mode, modulus, offset }
    Jhash { of, modulus, seed, offset }
    Symhash { modulus, offset }
    Ipsec { key, out, number }
    Inner { tunnel, field }
    Binary { left, op, right }
    Map { key, map }
    Elem { value, statements, comment }
    Prefix { value, length }

    Family { 0 }
    EtherAddr { 0 }
    CtKey { 0 }
    Direction { 0 }
    ExthdrOp { 0 }
    FibResult { 0 }
    InnerType { 0 }
    MetaKey { 0 }
    NumgenMode { 0 }
    ObjectKind { 0 }
    PayloadBase { 0 }
    RtKey { 0 }
    SocketKey { 0 }
    TunnelKey { 0 }
    XfrmKey { 0 }
}

flags! { FibFlags LogFlags NatFlags }

names! { Name Comment InterfaceName }

impl<V: Pack> Pack for Mapping<V> {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Named(name) => {
                to.push(0);
                name.pack(to)
            }
            Self::Anonymous(pairs) => {
                to.push(1);
                pairs.pack(to)
            }
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        match u8::unpack(from)? {
            0 => Pack::unpack(from).map(Self::Named),
            1 => Pack::unpack(from).map(Self::Anonymous),
            _ => None,
        }
    }
}

impl Pack for Payload {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        self.numbers().pack(to)
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let (header, index) = Pack::unpack(from)?;
        Self::from_numbers(header, index)
    }
}

/// Those with a name by their place in the list of all, the others by their numbers.
impl Pack for Exthdr {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        let named = Self::all().position(|of| of == *self);
        match named {
            Some(place) => {
                to.push(0);
                u64::try_from(place).ok()?.pack(to)
            }
            None => {
                to.push(1);
                (self.op(), self.kind()).pack(to)?;
                (!self.is_presence()).then(|| (self.offset(), self.bits())).pack(to)
            }
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        if u8::unpack(from)? == 0 {
            return Self::all().nth(usize::try_from(u64::unpack(from)?).ok()?);
        }
        let ((op, kind), at) = Pack::unpack(from)?;
        Some(Self::option(op, kind, at))
    }
}
