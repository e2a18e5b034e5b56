//! Chains of a rule's own: made, filled, and then jumped to, all in the same batch.

use crate::expr::{self, Data, Register, VerdictCode};
use crate::lang::lower::{Before, Lower, LowerError};
use crate::lang::{BoundChain, Statement};

impl Lower<'_> {
    pub(super) fn bound(&mut self, chain: &BoundChain) -> Result<(), LowerError> {
        if self.within {
            return Err(LowerError::Unsupported {
                what: "a chain of a rule's own cannot hold another one",
                expression: Statement::from(chain.clone()).to_string(),
            });
        }
        *self.numbers += 1;
        let number = *self.numbers;
        self.out.before.push(Before::Chain(number));
        for rule in &chain.rules {
            let mut lower = Lower::new(self.table, self.sets, self.intervals, self.numbers);
            lower.within = true;
            lower.rule(&rule.statements)?;
            let out = lower.out;
            self.out.before.extend(out.before);
            self.out.doubts.extend(out.doubts);
            self.out.before.push(Before::Rule {
                chain: number,
                exprs: out.exprs,
                comment: rule.comment.clone(),
            });
        }
        let code = if chain.goto { VerdictCode::GOTO } else { VerdictCode::JUMP };
        self.push(expr::Immediate { dreg: Register::VERDICT, data: Data::ChainId(code, number) });
        Ok(())
    }
}
