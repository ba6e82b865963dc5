//! `bench`: check and time programs.

use super::Ending;
use crate::agree::{Agreed, Verdict, agree};
use crate::arms::{Arms, Static};
use crate::cli::BenchArgs;
use crate::native::Compiler;
use crate::progress::progress;
use crate::report::json::{Bench, Measured, Record, create, write_json};
use crate::report::{page, table};
use crate::sample::{Effort, Figures, Round, sample};
use crate::schedule::Arm;
use crate::subject::Subject;
use crate::target::cpu;
use anyhow::{Result, bail};
use loopopt::Options;
use std::io::Write;

pub(super) fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Ending> {
    let options = args.optimizer.options()?;
    let mut subjects = Subject::all(&args.files)?;
    subjects.retain(|subject| subject.matches(args.filter.as_deref()));
    if subjects.is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        bail!("no program has `{filter}` in its name or as a tag; `list` names them all");
    }
    let file = args.json.as_deref().map(create).transpose()?;
    let page = args.page.as_deref().map(create).transpose()?;
    let compiler = if args.native { Compiler::find() } else { None };
    if args.native && compiler.is_none() {
        writeln!(out, "there is no C compiler (`cc`): the native column is left out\n")?;
    }
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let mut trials: Vec<Trial<'_>> = Vec::with_capacity(subjects.len());
    for subject in &subjects {
        trials.push(Trial::new(subject, &options)?);
    }
    let progress = progress(trials.len() * effort.visits);
    for _ in 0..effort.visits {
        for trial in &mut trials {
            progress.set_message(trial.record.name.clone());
            trial.visit(effort)?;
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let records = trials.into_iter().map(|trial| trial.finish(compiler.as_ref())).collect::<Result<_>>()?;
    let bench = Bench::new(records, cpu());
    table::print(&bench, compiler.is_some(), out)?;
    if let Some(file) = file {
        write_json(file, &bench)?;
    }
    if let Some(mut file) = page {
        page::write(&bench, &mut file)?;
    }
    let agree = bench.programs.iter().all(|record| record.agree);
    Ok(if agree { Ending::Fine } else { Ending::Differs })
}

/// A program on its way from the check to the figures.
struct Trial<'a> {
    subject: &'a Subject,
    /// Nothing if the arms do not agree.
    agreed: Option<Agreed<'a>>,
    rounds: Vec<Round>,
    described: [Static; 2],
    record: Record,
}

impl<'a> Trial<'a> {
    /// Checks a program.
    fn new(subject: &'a Subject, options: &'a Options) -> Result<Self> {
        let mut trial = Self {
            subject,
            agreed: None,
            rounds: Vec::new(),
            described: Default::default(),
            record: Record::new(subject),
        };
        match agree(subject, options)? {
            Verdict::Differs(what) => trial.record.difference = Some(what),
            Verdict::Agreed(agreed) => {
                trial.record.count_fired(&agreed.reports);
                trial.agreed = Some(agreed);
            }
        }
        Ok(trial)
    }

    /// Times a program, if it is right.
    fn visit(&mut self, effort: Effort) -> Result<()> {
        let Some(agreed) = &self.agreed else { return Ok(()) };
        let mut arms = match Arms::new(agreed)? {
            Ok(arms) => arms,
            Err(what) => {
                self.record.difference = Some(what);
                self.agreed = None;
                return Ok(());
            }
        };
        let mut call = arms.prepare(agreed)?;
        self.rounds.extend(sample(&mut arms, &mut call, effort)?);
        self.described = [Arm::Baseline, Arm::LoopOpt].map(|arm| arms.describe(arm));
        Ok(())
    }

    fn finish(self, compiler: Option<&Compiler>) -> Result<Record> {
        let Self { subject, agreed, rounds, described, mut record } = self;
        if agreed.is_some() {
            record.agree = true;
            record.measured = Some(Measured::new(&Figures::new(&rounds), rounds.len(), described));
            record.native_ns = compiler.map(|compiler| compiler.time(subject)).transpose()?.flatten();
        }
        Ok(record)
    }
}
