//! `bench`: check and time programs.

use super::Ending;
use crate::agree::{Agreed, Verdict, agree};
use crate::arms::Arms;
use crate::cli::BenchArgs;
use crate::interrupt;
use crate::native::Compiler;
use crate::progress::progress;
use crate::report::json::{Bench, Measured, Record, create};
use crate::report::saved::{self, Saved};
use crate::report::whole::WholeFile;
use crate::report::{compare, csv, page, table};
use crate::sample::{Effort, Figures, Round, sample};
use crate::schedule::Arm;
use crate::subject::Subject;
use crate::target::cpu;
use anyhow::{Result, bail};
use std::fs::File;
use std::io::Write;

pub(super) fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Ending> {
    let mut subjects = Subject::selected(&args.files, args.filter.as_deref(), &args.optimizer)?;
    if args.by_hand {
        subjects = Subject::all_against_hand(subjects)?;
        if subjects.is_empty() {
            bail!(
                "none of these programs has been rewritten by hand; `bench --by-hand` without a filter compares all that have"
            );
        }
        writeln!(out, "baseline: rewritten by hand, with loopopt; loopopt: as a front end writes it, with loopopt\n")?;
    }
    let outputs = Outputs::open(args)?;
    let compiler = if args.native { Compiler::find() } else { None };
    if args.native && compiler.is_none() {
        writeln!(out, "there is no C compiler (`cc`): the native column is left out\n")?;
    }
    interrupt::listen()?;
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let work = Work { effort, compiler: compiler.as_ref() };
    let subjects: Vec<&Subject> = subjects.iter().collect();
    let trials = measure(&subjects, &work, |trials| outputs.update(trials))?;
    let bench = outputs.bench(&trials, !interrupt::is_asked());
    table::print(&bench, compiler.is_some(), out)?;
    outputs.finish(args, &bench, out)?;
    Ok(Ending::of(&bench))
}

/// What is done with each program.
struct Work<'a> {
    effort: Effort,
    compiler: Option<&'a Compiler>,
}

/// Checks and times programs for another command.
pub(super) fn measured(subjects: &[&Subject], effort: Effort) -> Result<Bench> {
    interrupt::listen()?;
    let trials = measure(subjects, &Work { effort, compiler: None }, |_| Ok(()))?;
    Ok(known(&trials, cpu(), !interrupt::is_asked()))
}

/// Checks and times all programs, or as many as it can before somebody asks to stop. `update` takes what is known after each visit.
fn measure<'a>(
    subjects: &[&'a Subject],
    work: &Work<'_>,
    update: impl Fn(&[Trial<'_>]) -> Result<()>,
) -> Result<Vec<Trial<'a>>> {
    let visits = work.effort.visits;
    let steps = visits + usize::from(work.compiler.is_some());
    let progress = progress(subjects.len() * steps);
    let mut trials: Vec<Trial<'_>> = Vec::with_capacity(subjects.len());
    for subject in subjects.iter().take_while(|_| !interrupt::is_asked()) {
        progress.set_message(format!("{}: compared", subject.name));
        trials.push(Trial::new(subject)?);
    }
    for step in 0..steps {
        for place in 0..trials.len() {
            if interrupt::is_asked() {
                break;
            }
            progress.set_message(&trials[place].record.name);
            match work.compiler.filter(|_| step == visits) {
                Some(compiler) => trials[place].time_native(compiler)?,
                None => trials[place].visit(work.effort)?,
            }
            progress.inc(1);
            update(&trials)?;
        }
    }
    progress.finish_and_clear();
    Ok(trials)
}

/// What is known of the programs.
fn known(trials: &[Trial<'_>], cpu: String, complete: bool) -> Bench {
    let known = trials.iter().map(|trial| &trial.record).filter(|record| record.is_known());
    Bench::new(known.cloned().collect(), cpu, complete)
}

/// Where results go besides the standard output. What cannot be written is known before anything is measured.
struct Outputs {
    cpu: String,
    json: Option<WholeFile>,
    csv: Option<File>,
    page: Option<File>,
    save: Option<WholeFile>,
    earlier: Option<Saved>,
}

impl Outputs {
    fn open(args: &BenchArgs) -> Result<Self> {
        let cpu = cpu();
        let earlier = args.compare.as_deref().map(|name| Saved::read(&saved::place(name), &cpu)).transpose()?;
        let save = |name: &str| {
            let path = saved::place(name);
            saved::make_room(&path)?;
            WholeFile::new(&path)
        };
        let outputs = Self {
            json: args.json.as_deref().map(WholeFile::new).transpose()?,
            csv: args.csv.as_deref().map(create).transpose()?,
            page: args.page.as_deref().map(create).transpose()?,
            save: args.save.as_deref().map(save).transpose()?,
            earlier,
            cpu,
        };
        outputs.update(&[])?;
        Ok(outputs)
    }

    /// What is known of the programs.
    fn bench(&self, trials: &[Trial<'_>], complete: bool) -> Bench {
        known(trials, self.cpu.clone(), complete)
    }

    /// Writes what is known so far.
    fn update(&self, trials: &[Trial<'_>]) -> Result<()> {
        self.json.as_ref().map_or(Ok(()), |json| json.write(&self.bench(trials, false)))
    }

    /// Writes all that is asked for. A run that was interrupted does not take the place of one that is kept.
    fn finish(self, args: &BenchArgs, bench: &Bench, out: &mut dyn Write) -> Result<()> {
        let now = Saved::new(bench, args.settings());
        if let Some((name, earlier)) = args.compare.as_ref().zip(self.earlier) {
            compare::print(name, &earlier, &now, out)?;
        }
        if !bench.complete {
            writeln!(out, "\n{}", interrupt::NOTICE)?;
        }
        if let Some(json) = self.json {
            json.finish(bench)?;
        }
        if let Some(file) = self.csv {
            csv::write(&bench.programs, file)?;
        }
        if let Some(mut file) = self.page {
            page::write(bench, &mut file)?;
        }
        match self.save {
            Some(save) if bench.complete => save.finish(&now),
            Some(_) => Ok(writeln!(out, "interrupted: the run is not saved")?),
            None => Ok(()),
        }
    }
}

/// A program on its way from the check to the figures.
struct Trial<'a> {
    subject: &'a Subject,
    /// Nothing if the arms do not agree.
    agreed: Option<Agreed<'a>>,
    rounds: Vec<Round>,
    record: Record,
}

impl<'a> Trial<'a> {
    /// Checks a program.
    fn new(subject: &'a Subject) -> Result<Self> {
        let mut trial = Self { subject, agreed: None, rounds: Vec::new(), record: Record::new(subject) };
        match agree(subject)? {
            Verdict::Differs(what) => trial.differs(what),
            Verdict::Failed(what) => trial.record.failure = Some(what),
            Verdict::Agreed(agreed) => {
                trial.record.count_fired(&agreed.reports);
                trial.agreed = Some(agreed);
            }
        }
        Ok(trial)
    }

    /// What differs is not timed, and what was timed of it does not count.
    fn differs(&mut self, what: String) {
        self.agreed = None;
        self.record.agree = false;
        self.record.measured = None;
        self.record.difference = Some(what);
    }

    /// Times a program, if it is right.
    fn visit(&mut self, effort: Effort) -> Result<()> {
        let Some(agreed) = &self.agreed else { return Ok(()) };
        let mut arms = match Arms::new(agreed)? {
            Ok(arms) => arms,
            Err(what) => {
                self.differs(what);
                return Ok(());
            }
        };
        let mut call = arms.prepare(agreed)?;
        self.rounds.extend(sample(&mut arms, &mut call, effort)?);
        if !self.rounds.is_empty() {
            let described = [Arm::Baseline, Arm::LoopOpt].map(|arm| arms.describe(arm));
            self.record.agree = true;
            self.record.measured = Some(Measured::new(&Figures::new(&self.rounds), self.rounds.len(), described));
        }
        Ok(())
    }

    /// Times the program's C kernel, if the program is right.
    fn time_native(&mut self, compiler: &Compiler) -> Result<()> {
        if self.record.agree {
            self.record.native_ns = compiler.time(self.subject)?;
        }
        Ok(())
    }
}
