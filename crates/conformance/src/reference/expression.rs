//! Expressions as libnftnl says them: by attribute, in values of C.

use std::ffi::{CString, c_void};

use super::{Aligned, HEADER, NlMsgHdr, ROOM, sys};

/// An expression in libnftnl's words: its name, its attributes (`NFTNL_EXPR_*`) as C has them in memory, and
/// the expressions in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The kernel's name of the expression.
    pub name: &'static str,
    /// Numbers in host order; texts with their NUL.
    pub attributes: Vec<(u32, Vec<u8>)>,
    /// The attribute that holds expressions, and these.
    pub inner: Option<(u32, Vec<Self>)>,
}

impl Stated {
    /// Returns an expression of this name, without attributes.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), inner: None }
    }

    /// Adds a byte.
    #[must_use]
    pub fn u8(self, attribute: u32, value: u8) -> Self {
        self.bytes(attribute, &[value])
    }

    /// Adds a number.
    #[must_use]
    pub fn u16(self, attribute: u32, value: u16) -> Self {
        self.bytes(attribute, &value.to_ne_bytes())
    }

    /// Adds a number.
    #[must_use]
    pub fn u32(self, attribute: u32, value: u32) -> Self {
        self.bytes(attribute, &value.to_ne_bytes())
    }

    /// Adds a number.
    #[must_use]
    pub fn u64(self, attribute: u32, value: u64) -> Self {
        self.bytes(attribute, &value.to_ne_bytes())
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, attribute: u32, value: &str) -> Self {
        self.bytes(attribute, &[value.as_bytes(), &[0]].concat())
    }

    /// Adds bytes.
    #[must_use]
    pub fn bytes(mut self, attribute: u32, value: &[u8]) -> Self {
        self.attributes.push((attribute, value.to_vec()));
        self
    }

    /// Adds expressions that it holds.
    #[must_use]
    pub fn inner(mut self, attribute: u32, exprs: impl IntoIterator<Item = Self>) -> Self {
        self.inner = Some((attribute, exprs.into_iter().collect()));
        self
    }

    fn build(&self) -> *mut sys::nftnl_expr {
        let name = CString::new(self.name).expect("a name of the kernel");
        // SAFETY: the name ends with a NUL, and libnftnl copies it.
        let expr = unsafe { sys::nftnl_expr_alloc(name.as_ptr()) };
        assert!(!expr.is_null(), "libnftnl knows no {}", self.name);
        for (attribute, value) in &self.attributes {
            // SAFETY: the value is as long as it is said to be. libnftnl copies values, but for the data of a
            // module of xtables, which it frees with the expression: that is memory of C's.
            unsafe {
                let owned = matches!(self.name, "match" | "target") && *attribute == sys::NFTNL_EXPR_MT_INFO;
                let pointer = if owned { copied(value) } else { value.as_ptr().cast() };
                sys::nftnl_expr_set(expr, narrow(*attribute), pointer, length(value));
            }
        }
        for (attribute, inner) in self.inner.iter().flat_map(|(a, list)| list.iter().map(move |i| (a, i))) {
            // SAFETY: both are expressions of libnftnl's; the outer one owns the inner one from now on.
            unsafe { sys::nftnl_expr_add_expr(expr, *attribute, inner.build()) };
        }
        expr
    }
}

/// Returns the payload of a message about a rule of these expressions, as libnftnl builds it; `nfgenmsg` left
/// out.
///
/// # Panics
/// When libnftnl does not know one of them.
#[must_use]
pub fn rule_of(exprs: &[Stated]) -> Vec<u8> {
    let mut output = Aligned::new(ROOM);
    output.set_length(HEADER);
    // SAFETY: the rule is ours until it is freed, and owns its expressions; the message has room for more
    // than they can say.
    unsafe {
        let rule = sys::nftnl_rule_alloc();
        for expr in exprs {
            sys::nftnl_rule_add_expr(rule, expr.build());
        }
        sys::nftnl_rule_nlmsg_build_payload(output.pointer(), rule);
        sys::nftnl_rule_free(rule);
    }
    let length = output.length();
    output.bytes_mut().get(HEADER..length).map(<[u8]>::to_vec).unwrap_or_default()
}

/// Lets libnftnl parse a message about a rule with one expression, and asks it for every attribute that it
/// found there: up to 32, which is more than any has.
///
/// # Errors
/// When it cannot parse the message, or finds no expression.
pub fn attributes_of(message: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, String> {
    let mut input = Aligned::new(message.len());
    input.bytes_mut().get_mut(..message.len()).ok_or("no room")?.copy_from_slice(message);
    if message.len() < HEADER || input.length() != message.len() {
        return Err(format!("{} bytes are no message", message.len()));
    }
    let from: *const NlMsgHdr = input.pointer();
    let mut found = Err("no expression".to_owned());
    // SAFETY: the message is as long as its header says; the rule is ours until it is freed, and what the
    // expression points at is read before that.
    unsafe {
        let rule = sys::nftnl_rule_alloc();
        if sys::nftnl_rule_nlmsg_parse(from, rule) < 0 {
            found = Err(format!("libnftnl cannot parse it: {}", std::io::Error::last_os_error()));
        } else {
            let iterator = sys::nftnl_expr_iter_create(rule);
            let expr = sys::nftnl_expr_iter_next(iterator);
            if !expr.is_null() {
                found = Ok((1..32).filter_map(|attribute| get(expr, attribute)).collect());
            }
            sys::nftnl_expr_iter_destroy(iterator);
        }
        sys::nftnl_rule_free(rule);
    }
    found
}

/// # Safety
/// It must be an expression of libnftnl's.
unsafe fn get(expr: *const sys::nftnl_expr, attribute: u32) -> Option<(u32, Vec<u8>)> {
    let mut length = 0;
    // SAFETY: libnftnl checks the attribute, and points at as many bytes as it says.
    unsafe {
        if !sys::nftnl_expr_is_set(expr, narrow(attribute)) {
            return None;
        }
        let pointer: *const u8 = sys::nftnl_expr_get(expr, narrow(attribute), &raw mut length).cast();
        let length = usize::try_from(length).unwrap_or(0);
        let bytes = if pointer.is_null() { &[] } else { std::slice::from_raw_parts(pointer, length) };
        Some((attribute, bytes.to_vec()))
    }
}

/// # Safety
/// The caller must free it.
unsafe fn copied(value: &[u8]) -> *const c_void {
    // SAFETY: the new memory is as long as the value.
    unsafe {
        let memory = sys::libc::malloc(value.len().max(1));
        assert!(!memory.is_null(), "no memory");
        std::ptr::copy_nonoverlapping(value.as_ptr(), memory.cast(), value.len());
        memory
    }
}

fn narrow(attribute: u32) -> u16 {
    u16::try_from(attribute).unwrap_or(u16::MAX)
}

fn length(value: &[u8]) -> u32 {
    u32::try_from(value.len()).unwrap_or(u32::MAX)
}
