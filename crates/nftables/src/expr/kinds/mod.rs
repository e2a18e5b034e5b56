//! The numbers and flags that expressions are made of (`linux/netfilter/nf_tables.h`). Open sets are newtypes, so that
//! what a newer kernel says survives; flags keep bits that have no name here.

macro_rules! wire_newtype {
    ($name:ident $inner:ident) => {
        impl Value for $name {
            fn write(&self, w: &mut Writer<'_>, kind: u16) {
                self.0.write(w, kind);
            }

            fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
                $inner::read(attribute).map(Self)
            }
        }
    };
}

mod flags;
mod numbers;
mod register;
mod types;

pub use flags::*;
pub use numbers::*;
pub use register::Register;
