//! Registers by the numbers that the kernel shows: the first word of a large register is that register, whichever number it was given by.

use crate::expr::{Expr, Register};

/// Gives all registers of an expression the numbers by which they are shown.
pub(super) fn number(expr: &mut Expr) {
    match expr {
        Expr::Immediate(e) => one(&mut e.dreg),
        Expr::Cmp(e) => one(&mut e.sreg),
        Expr::Range(e) => one(&mut e.sreg),
        Expr::Lookup(e) => two(&mut e.sreg, &mut e.dreg),
        Expr::Bitwise(e) => {
            one(&mut e.dreg);
            two(&mut e.sreg, &mut e.sreg2);
        }
        Expr::Byteorder(e) => [&mut e.sreg, &mut e.dreg].into_iter().for_each(one),
        Expr::Payload(e) => some([&mut e.dreg, &mut e.sreg]),
        Expr::Meta(e) => some([&mut e.dreg, &mut e.sreg]),
        Expr::Ct(e) => some([&mut e.dreg, &mut e.sreg]),
        Expr::Exthdr(e) => some([&mut e.dreg, &mut e.sreg]),
        Expr::Rt(e) => one(&mut e.dreg),
        Expr::Socket(e) => one(&mut e.dreg),
        Expr::Osf(e) => one(&mut e.dreg),
        Expr::Fib(e) => one(&mut e.dreg),
        Expr::Xfrm(e) => one(&mut e.dreg),
        Expr::Tunnel(e) => one(&mut e.dreg),
        Expr::Numgen(e) => one(&mut e.dreg),
        Expr::Hash(e) => two(&mut e.dreg, &mut e.sreg),
        Expr::Nat(e) => some([&mut e.addr_min, &mut e.addr_max, &mut e.proto_min, &mut e.proto_max]),
        Expr::Masq(e) => some([&mut e.proto_min, &mut e.proto_max]),
        Expr::Redir(e) => some([&mut e.proto_min, &mut e.proto_max]),
        Expr::Tproxy(e) => some([&mut e.addr, &mut e.port]),
        Expr::Dup(e) => some([&mut e.addr, &mut e.device]),
        Expr::Fwd(e) => two(&mut e.device, &mut e.addr),
        Expr::Queue(e) => some([&mut e.sreg]),
        Expr::Dynset(e) => two(&mut e.key, &mut e.data),
        Expr::Objref(e) => some([&mut e.sreg]),
        Expr::Inner(e) => number(&mut e.expr),
        _ => {}
    }
}

fn one(register: &mut Register) {
    // NFT_REG32_00, NFT_REG32_15
    if (8..=23).contains(&register.0) && register.0.is_multiple_of(4) {
        register.0 = register.0 / 4 - 1;
    }
}

fn two(always: &mut Register, sometimes: &mut Option<Register>) {
    one(always);
    some([sometimes]);
}

fn some<const N: usize>(registers: [&mut Option<Register>; N]) {
    registers.into_iter().flatten().for_each(one);
}
