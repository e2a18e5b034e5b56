//! Lowers anonymous chains of rules: they are created, filled, and then jumped to, in the same batch.

use crate::check::LowerError;
use crate::compile::lower::{Before, Lower};
use crate::expr::{self, Data, Register, VerdictCode};
use crate::tree::{BoundChain, Statement};

impl Lower<'_> {
    pub(super) fn bound(&mut self, chain: &BoundChain) -> Result<(), LowerError> {
        if self.in_anonymous_chain {
            return Err(LowerError::Unsupported {
                what: "a chain inside a rule cannot contain another one",
                expression: Statement::from(chain.clone()).to_string(),
            });
        }
        *self.numbers += 1;
        let number = *self.numbers;
        self.out.before.push(Before::Chain(number));
        for rule in &chain.rules {
            let mut lower = Lower::new(self.table, self.sets, self.intervals, self.numbers);
            lower.in_anonymous_chain = true;
            lower.rule(&rule.statements)?;
            let out = lower.out;
            self.out.before.extend(out.before);
            self.out.sets_to_query.extend(out.sets_to_query);
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
