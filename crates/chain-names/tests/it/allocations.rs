//! Creating a name needs no allocation, measured by a counting allocator.
#![allow(unsafe_code, reason = "a global allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use sluicegate_chain_names::schemes::{calico, cni, kube_proxy, kube_router};
use sluicegate_chain_names::{Endpoint, Protocol, ServicePort, XtName};

struct Counting;

thread_local! {
    // Const-initialised and without a destructor, so that reading it does not allocate.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded unchanged to the system's allocator.

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(f: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    f();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 1);
    assert!(allocations(|| drop(black_box(format!("{}", black_box(1))))) > 0);
}

#[test]
fn iptables_names_allocate_nothing() {
    assert_eq!(
        allocations(|| {
            for text in ["10.244.0.10:8080", "[2001:db8::1]:8080"] {
                let port = ServicePort::new("demo", "web", "http", Protocol::Tcp).unwrap();
                let names = port.iptables();
                black_box((names.service(), names.local(), names.external(), names.firewall()));
                let endpoint: Endpoint = text.parse().unwrap();
                black_box(port.iptables_endpoint(&endpoint));
            }
            black_box(XtName::new("KUBE-SERVICES").unwrap());
            black_box(kube_proxy::SEP.name(&["demo/web:http", "tcp", "10.244.0.10:8080"]).unwrap());
        }),
        0
    );
}

#[test]
fn the_other_names_allocate_nothing_either() {
    let port = ServicePort::new("demo", "web", "http", Protocol::Tcp).unwrap();
    let endpoint: Endpoint = "[2001:db8::1]:8080".parse().unwrap();
    assert_eq!(
        allocations(|| {
            let names = port.nftables();
            black_box((names.service(), names.local(), names.external(), names.firewall()));
            let names = port.nftables_endpoint(&endpoint);
            black_box((names.chain(), names.affinity()));
            black_box(kube_router::POD_FW.name(&["demo", "web-0", "1"]).unwrap());
            black_box(kube_router::SRC.name(&["demo", "deny", "IPv4"]).unwrap());
            black_box(calico::POLICY_INBOUND.name(&["default/a-long-name-of-a-policy"]).unwrap());
            black_box(calico::SELECTOR_SET.name(&["s:", "all()"]).unwrap());
            black_box(cni::CHAIN.name(&["net", "1234"]).unwrap());
        }),
        0
    );
}

#[test]
fn the_sizes_are_as_documented() {
    assert!(size_of::<XtName>() <= 40, "{}", size_of::<XtName>());
    assert_eq!(size_of::<sluicegate_chain_names::NftName>(), 264);
}
