//! Kinds of fields: flags, values, and both with negation.

use std::fmt::Display;
use std::str::FromStr;

use super::words::SetUse;
use crate::spec::OptionUse;
use crate::value::integer;

/// A value that `!` may stand before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Not<T> {
    /// `!` stands before it.
    pub negated: bool,
    /// The value.
    pub value: T,
}

impl<T> Not<T> {
    /// Returns a field without `!`.
    #[must_use]
    pub fn plain(value: T) -> Self {
        Self { negated: false, value }
    }

    /// Returns a field with `!`.
    #[must_use]
    pub fn negated(value: T) -> Self {
        Self { negated: true, value }
    }
}

/// The value of an option that may stand without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Optional(pub Option<String>);

/// Negation and values of an option that is used.
type Used = (bool, Vec<String>);

/// A field of a structure that stands for a module.
pub(crate) trait Field: Sized {
    fn read(option: Option<&OptionUse<'_>>) -> Result<Self, String>;
    fn write(&self) -> Option<Used>;
}

/// A value of an option.
pub(crate) trait Words: Sized {
    fn read(values: &[std::borrow::Cow<'_, str>]) -> Result<Self, String>;
    fn write(&self) -> Vec<String>;
}

/// A value that is one word, with the spelling of its `Display`.
pub(crate) trait OneWord: FromStr<Err = String> + Display {}

impl<T: OneWord> Words for T {
    fn read(values: &[std::borrow::Cow<'_, str>]) -> Result<Self, String> {
        match values {
            [value] => value.parse(),
            _ => Err(format!("expected one value, there are {}", values.len())),
        }
    }

    fn write(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}

impl Words for String {
    fn read(values: &[std::borrow::Cow<'_, str>]) -> Result<Self, String> {
        match values {
            [value] => Ok(value.clone().into_owned()),
            _ => Err(format!("expected one value, there are {}", values.len())),
        }
    }

    fn write(&self) -> Vec<String> {
        vec![self.clone()]
    }
}

impl Words for (String, String) {
    fn read(values: &[std::borrow::Cow<'_, str>]) -> Result<Self, String> {
        match values {
            [first, second] => Ok((first.clone().into_owned(), second.clone().into_owned())),
            _ => Err(format!("expected two values, there are {}", values.len())),
        }
    }

    fn write(&self) -> Vec<String> {
        vec![self.0.clone(), self.1.clone()]
    }
}

impl Words for SetUse {
    fn read(values: &[std::borrow::Cow<'_, str>]) -> Result<Self, String> {
        let (name, flags) = <(String, String) as Words>::read(values)?;
        Ok(Self { name, flags: flags.parse()? })
    }

    fn write(&self) -> Vec<String> {
        vec![self.name.clone(), self.flags.to_string()]
    }
}

impl Words for Optional {
    fn read(values: &[std::borrow::Cow<'_, str>]) -> Result<Self, String> {
        match values {
            [] => Ok(Self(None)),
            [value] => Ok(Self(Some(value.clone().into_owned()))),
            _ => Err(format!("expected at most one value, there are {}", values.len())),
        }
    }

    fn write(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}

/// A flag.
impl Words for () {
    fn read(values: &[std::borrow::Cow<'_, str>]) -> Result<Self, String> {
        if values.is_empty() { Ok(()) } else { Err("takes no value".to_owned()) }
    }

    fn write(&self) -> Vec<String> {
        Vec::new()
    }
}

macro_rules! numbers {
    ($($type:ident)*) => {$(
        impl Words for $type {
            fn read(values: &[std::borrow::Cow<'_, str>]) -> Result<Self, String> {
                let wrong = || format!("expected a number from 0 to {}", $type::MAX);
                match values {
                    [value] => integer(value).and_then(|number| number.try_into().ok()).ok_or_else(wrong),
                    _ => Err(wrong()),
                }
            }

            fn write(&self) -> Vec<String> {
                vec![self.to_string()]
            }
        }
    )*};
}
numbers!(u8 u16 u32 u64);

impl Field for bool {
    fn read(option: Option<&OptionUse<'_>>) -> Result<Self, String> {
        option.map_or(Ok(false), |option| plain::<()>(option).map(|()| true))
    }

    fn write(&self) -> Option<Used> {
        self.then(|| (false, Vec::new()))
    }
}

impl<T: Words> Field for T {
    fn read(option: Option<&OptionUse<'_>>) -> Result<Self, String> {
        plain(option.ok_or("is needed")?)
    }

    fn write(&self) -> Option<Used> {
        Some((false, Words::write(self)))
    }
}

impl<T: Words> Field for Option<T> {
    fn read(option: Option<&OptionUse<'_>>) -> Result<Self, String> {
        option.map(plain).transpose()
    }

    fn write(&self) -> Option<Used> {
        self.as_ref().map(|value| (false, Words::write(value)))
    }
}

impl<T: Words> Field for Option<Not<T>> {
    fn read(option: Option<&OptionUse<'_>>) -> Result<Self, String> {
        option.map(maybe_negated).transpose()
    }

    fn write(&self) -> Option<Used> {
        self.as_ref().map(|not| (not.negated, Words::write(&not.value)))
    }
}

impl<T: Words> Field for Not<T> {
    fn read(option: Option<&OptionUse<'_>>) -> Result<Self, String> {
        maybe_negated(option.ok_or("is needed")?)
    }

    fn write(&self) -> Option<Used> {
        Some((self.negated, Words::write(&self.value)))
    }
}

fn plain<T: Words>(option: &OptionUse<'_>) -> Result<T, String> {
    if option.negated {
        return Err("cannot be negated".to_owned());
    }
    T::read(option.values.as_slice())
}

fn maybe_negated<T: Words>(option: &OptionUse<'_>) -> Result<Not<T>, String> {
    Ok(Not { negated: option.negated, value: T::read(option.values.as_slice())? })
}
