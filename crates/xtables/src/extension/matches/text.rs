//! Matches with text, patterns and programs: `linux/netfilter/xt_{comment,string,u32,bpf}.h`.

use sluicegate_iptables_save::encode;

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, number};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("comment", 0, 256, comment, read_comment),
    codec("string", 1, 160, string, read_string).compared_to(152),
    codec("u32", 0, 1984, u32_tests, read_u32),
    codec("bpf", 1, 528, bpf, read_bpf).compared_to(520).without(4..8),
];

/// `struct xt_comment_info`
fn comment(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.text(given.need("comment")?, 256)
}

fn read_comment(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.value("comment", data.text(256)?);
    Some(())
}

/// `struct xt_string_info`
fn string(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u16(given.number("from")?);
    out.u16(if given.has("to") { given.number("to")? } else { u16::MAX });
    out.text(given.need("algo")?, 16)?;
    let (name, bytes) = match given.word("string") {
        Some(text) => ("string", encode(text).into_owned()),
        None => ("hex-string", hex_string(given.need("hex-string")?)?),
    };
    let length = u8::try_from(bytes.len()).ok().filter(|length| usize::from(*length) <= PATTERN);
    let length = length.ok_or_else(|| Mismatch::expected(format!("at most {PATTERN} bytes")).option(name))?;
    out.bytes(&bytes);
    out.zeros(PATTERN - bytes.len());
    out.u8(length);
    out.u8(u8::from(given.not(name)) | if given.has("icase") { 2 } else { 0 });
    out.align(8);
    out.zeros(8);
    Ok(())
}

/// Reads bytes in hexadecimal between two bars, the one way in which they are saved.
fn hex_string(word: &str) -> Result<Vec<u8>, Mismatch> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let digits = word.strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
    let bytes = digits.and_then(|digits| digits.as_bytes().chunks(2).map(pair).collect());
    bytes.ok_or_else(|| Mismatch::expected("bytes in hexadecimal between two bars").found(word))
}

fn read_string(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [from, to] = [data.u16()?, data.u16()?];
    let algorithm = data.text(16)?;
    let pattern = data.take(PATTERN)?;
    let [length, flags]: [u8; 2] = data.array()?;
    let pattern = pattern.get(..length.into())?;
    let not = flags & 1 != 0;
    if pattern.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        built.value_not("string", not, String::from_utf8_lossy(pattern));
    } else {
        let digits: String = pattern.iter().map(|byte| format!("{byte:02x}")).collect();
        built.value_not("hex-string", not, format!("|{digits}|"));
    }
    built.value("algo", algorithm);
    if from != 0 {
        built.value("from", from);
    }
    if to != u16::MAX {
        built.value("to", to);
    }
    built.flag("icase", flags & 2 != 0);
    Some(())
}

/// `struct xt_u32`
fn u32_tests(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let word: String = given.need("u32")?.chars().filter(|c| !c.is_whitespace()).collect();
    let mut count = 0_u8;
    for test in word.split("&&") {
        count += 1;
        if usize::from(count) > U32_MOST {
            return Err(Mismatch::expected(format!("at most {U32_MOST} tests")).found(word));
        }
        u32_test(test, out)?;
    }
    out.zeros((U32_MOST - usize::from(count)) * U32_TEST);
    out.bytes(&[count, given.not("u32").into()]);
    out.align(4);
    Ok(())
}

/// Writes `struct xt_u32_test`: numbers, each with the operator before it, and ranges of values.
fn u32_test(test: &str, out: &mut Writer) -> Result<(), Mismatch> {
    let (mut rest, values) = test.split_once('=').ok_or_else(|| Mismatch::expected("`=`").found(test))?;
    let mut numbers = Vec::new();
    let mut operator = 0;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        numbers.push((number::<u32>(word, "u32")?, operator));
        if behind.is_empty() {
            break;
        }
        let found = U32_OPERATORS.iter().find_map(|(text, code)| Some((behind.strip_prefix(text)?, *code)));
        (rest, operator) = found.ok_or_else(|| Mismatch::expected("one of & << >> @").found(behind))?;
    }
    let ranges = values.split(',').map(|range| match range.split_once(':') {
        None => number(range, "u32").map(|value: u32| (value, value)),
        Some(("", high)) => Ok((0, number(high, "u32")?)),
        Some((low, high)) => Ok((number(low, "u32")?, number(high, "u32")?)),
    });
    let ranges = ranges.collect::<Result<Vec<(u32, u32)>, _>>()?;
    if numbers.len() > U32_MOST || ranges.len() > U32_MOST {
        return Err(
            Mismatch::expected(format!("at most {U32_MOST} numbers and {U32_MOST} values")).found(test)
        );
    }
    for at in 0..U32_MOST {
        let (number, operator) = numbers.get(at).copied().unwrap_or_default();
        out.u32(number);
        out.u8(operator);
        out.align(4);
    }
    for at in 0..U32_MOST {
        let (low, high) = ranges.get(at).copied().unwrap_or_default();
        out.u32(low);
        out.u32(high);
    }
    let count = |length: usize| u8::try_from(length).unwrap_or_default();
    out.bytes(&[count(numbers.len()), count(ranges.len())]);
    out.align(4);
    Ok(())
}

fn read_u32(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let tests = data.take(U32_MOST * U32_TEST)?;
    let [count, not]: [u8; 2] = data.array()?;
    let mut texts = Vec::new();
    for test in tests.chunks_exact(U32_TEST).take(count.into()) {
        texts.push(read_u32_test(&mut Reader::new(test))?);
    }
    built.value_not("u32", not != 0, texts.join("&&"));
    Some(())
}

fn read_u32_test(data: &mut Reader<'_>) -> Option<String> {
    let numbers = (0..U32_MOST).map(|_| Some((data.u32()?, data.u8()?, data.skip(3)?)));
    let numbers = numbers.collect::<Option<Vec<_>>>()?;
    let values = (0..U32_MOST).map(|_| data.u32().zip(data.u32())).collect::<Option<Vec<_>>>()?;
    let [count, ranges]: [u8; 2] = data.array()?;
    let mut text = String::new();
    for (at, (number, operator, ())) in numbers.iter().take(count.into()).enumerate() {
        if at > 0 {
            text.push_str(U32_OPERATORS.iter().find(|(_, code)| code == operator)?.0);
        }
        text.push_str(&format!("{number:#x}"));
    }
    text.push('=');
    let ranges = values.iter().take(ranges.into()).map(|(low, high)| match low == high {
        true => format!("{low:#x}"),
        false => format!("{low:#x}:{high:#x}"),
    });
    text.push_str(&ranges.collect::<Vec<_>>().join(","));
    Some(text)
}

/// `struct xt_bpf_info_v1`. Of a pinned program the kernel takes the path (`XT_BPF_MODE_PATH_PINNED`, from
/// Linux 4.16 on) and opens it itself.
fn bpf(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    if let Some(path) = given.word("object-pinned") {
        out.u16(PATH_PINNED);
        out.u16(0);
        // The descriptor is for older kernels. The tool leaves in it the number under which it has opened the
        // file, and compares it: this is the one of iptables-legacy -A, -C and -D.
        out.u32(3);
        out.text(path, BPF_MOST * 8)?;
        out.zeros(8);
        return Ok(());
    }
    let word = given.word("bytecode").ok_or(Mismatch::expected("--bytecode or --object-pinned"))?;
    let mut parts = word.split(',');
    let count: u16 = number(parts.next().unwrap_or_default().trim(), "bytecode")?;
    let instructions: Vec<_> = parts.filter(|part| !part.trim().is_empty()).collect();
    if instructions.len() != usize::from(count) || instructions.len() > BPF_MOST {
        return Err(
            Mismatch::expected(format!("{count} instructions, at most {BPF_MOST}")).found(instructions.len())
        );
    }
    out.u16(0);
    out.u16(count);
    out.u32(0);
    for instruction in &instructions {
        let fields: Vec<_> = instruction.split_whitespace().collect();
        let [code, jump_true, jump_false, value] = fields[..] else {
            return Err(Mismatch::expected("an instruction of four numbers").found(instruction));
        };
        out.u16(number(code, "bytecode")?);
        out.u8(number(jump_true, "bytecode")?);
        out.u8(number(jump_false, "bytecode")?);
        out.u32(number(value, "bytecode")?);
    }
    out.zeros((BPF_MOST - instructions.len()) * 8 + 8);
    Ok(())
}

fn read_bpf(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [mode, count] = [data.u16()?, data.u16()?];
    data.skip(4)?;
    if mode == PATH_PINNED {
        built.value("object-pinned", data.text(BPF_MOST * 8)?);
        return Some(());
    }
    if mode != 0 {
        return None;
    }
    let mut text = count.to_string();
    for _ in 0..count {
        let (code, jump_true, jump_false, value) = (data.u16()?, data.u8()?, data.u8()?, data.u32()?);
        text.push_str(&format!(",{code} {jump_true} {jump_false} {value}"));
    }
    built.value("bytecode", text);
    Some(())
}

/// `XT_STRING_MAX_PATTERN_SIZE`
const PATTERN: usize = 128;
/// `XT_U32_MAXSIZE` + 1
const U32_MOST: usize = 11;
/// The size of `struct xt_u32_test`.
const U32_TEST: usize = 180;
/// `XT_U32_*`
const U32_OPERATORS: &[(&str, u8)] = &[("&", 0), ("<<", 1), (">>", 2), ("@", 3)];
/// `XT_BPF_MODE_PATH_PINNED`
const PATH_PINNED: u16 = 1;
/// `XT_BPF_MAX_NUM_INSTR`
const BPF_MOST: usize = 64;
