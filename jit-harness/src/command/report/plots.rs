//! Plots of all programs: what they gain, and what that costs.
//!
//! Axes and grid are drawn by plotters. Points, intervals and names are drawn by us at the places that plotters gives, because they are links.
//! Colours are names for those of the style sheet, which differ by day and by night. All axes are logarithmic: half as much and twice as much
//! are equally far from 1.

use crate::report::json::Measured;
use anyhow::{Error, Result, anyhow};
use maud::{Markup, PreEscaped, html};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::ops::Range;

/// The grid's colour.
const GRID: RGBColor = RGBColor(1, 1, 1);
/// That of text and axes.
const TEXT: RGBColor = RGBColor(2, 2, 2);
/// That of the lines at 1.
const ONE: RGBColor = RGBColor(3, 3, 3);

/// Room between points and the edge, in binary logarithms.
const AROUND: f64 = 0.2;
/// Room for the names of programs.
const NAMES: u32 = 120;
/// How much room a program has in the plot of all.
const COLUMN: u32 = 12;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A program in a plot.
pub(super) struct Point<'a> {
    pub(super) name: &'a str,
    pub(super) page: &'a str,
    pub(super) measured: &'a Measured,
}

impl Point<'_> {
    fn class(&self) -> &'static str {
        match self.measured.ratio {
            _ if self.measured.no_gain => "noise",
            ratio if ratio > 1.0 => "slower",
            _ => "faster",
        }
    }

    fn link(&self, (x, y): (i32, i32), more: &str) -> Markup {
        html! {
            a href=(self.page) class=(self.class()) {
                circle cx=(x) cy=(y) r="4" { title { (self.name) ": " (format!("{:.3}", self.measured.ratio)) (more) } }
            }
        }
    }
}

/// All ratios with their intervals, in their order.
pub(super) fn ratios(points: &[Point<'_>]) -> Result<Markup> {
    let (width, height) = (70 + COLUMN * points.len().max(20) as u32, 330 + NAMES);
    let logs = points.iter().flat_map(|point| [point.measured.low.log2(), point.measured.high.log2()]);
    let (across, up) = (-0.7..points.len().max(20) as f64 - 0.3, around(logs));
    let mut svg = String::new();
    let mut links = Vec::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .set_label_area_size(LabelAreaPosition::Left, 52)
            .set_label_area_size(LabelAreaPosition::Bottom, NAMES)
            .build_cartesian_2d(across.clone(), up.clone())
            .map_err(failed)?;
        grid(&mut chart, ["", "time by Cranelift's"], [0.0, up.end - up.start])?;
        line(&mut chart, [(across.start, 0.0), (across.end, 0.0)])?;
        for (place, point) in points.iter().enumerate() {
            let ratios = [point.measured.low, point.measured.ratio, point.measured.high];
            let [low, at, high] = ratios.map(|ratio| chart.backend_coord(&(place as f64, ratio.log2())));
            links.push(html! { (interval(low, high)) (point.link(at, "")) (name(point, at.0, height - NAMES)) });
        }
    }
    Ok(picture(&svg, (width, height), &links))
}

/// An interval as a line with both ends marked.
fn interval((x, low): (i32, i32), (_, high): (i32, i32)) -> Markup {
    html! { path d=(format!("M{} {low}h4m-2 0V{high}m-2 0h4", x - 2)) {} }
}

/// The name of a program below its point.
fn name(point: &Point<'_>, x: i32, y: u32) -> Markup {
    html! {
        a href=(point.page) { text.name transform=(format!("translate({} {}) rotate(-60)", x + 4, y + 6)) { (point.name) } }
    }
}

/// What each program gains, against what it costs: `cost` is a ratio too.
pub(super) fn scatter(points: &[Point<'_>], title: &str, cost: impl Fn(&Measured) -> Option<f64>) -> Result<Markup> {
    let size = (580, 420);
    let known: Vec<(&Point<'_>, f64)> =
        points.iter().filter_map(|point| Some((point, cost(point.measured)?))).collect();
    let across = around(known.iter().map(|(_, cost)| cost.log2()));
    let up = around(points.iter().map(|point| point.measured.ratio.log2()));
    let mut svg = String::new();
    let mut links = Vec::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .set_label_area_size(LabelAreaPosition::Left, 52)
            .set_label_area_size(LabelAreaPosition::Bottom, 40)
            .build_cartesian_2d(across.clone(), up.clone())
            .map_err(failed)?;
        grid(&mut chart, [title, "time by Cranelift's"], [&across, &up].map(|range| range.end - range.start))?;
        line(&mut chart, [(across.start, 0.0), (across.end, 0.0)])?;
        line(&mut chart, [(0.0, up.start), (0.0, up.end)])?;
        for (point, cost) in known {
            let at = chart.backend_coord(&(cost.log2(), point.measured.ratio.log2()));
            links.push(point.link(at, &format!(", {title} {cost:.2}")));
        }
    }
    Ok(picture(&svg, size, &links))
}

/// The range of the logarithms, and of 0, with some room.
fn around(logs: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = logs.fold((0.0_f64, 0.0_f64), |(low, high), log| (low.min(log), high.max(log)));
    low - AROUND..high + AROUND
}

/// The axes, with lines where the logarithms are whole numbers. One over which nothing extends has neither.
fn grid(chart: &mut Chart<'_, '_>, titles: [&str; 2], extents: [f64; 2]) -> Result<()> {
    let text = ("sans-serif", 12).into_font().color(&TEXT);
    let label = |log: &f64| ratio(*log);
    let mut mesh = chart.configure_mesh();
    mesh.bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(TEXT)
        .label_style(text.clone())
        .axis_desc_style(text)
        .x_desc(titles[0])
        .y_desc(titles[1])
        .x_label_formatter(&label)
        .y_label_formatter(&label);
    let [across, up] = extents.map(|extent| extent.ceil() as usize);
    mesh.x_labels(across).y_labels(up);
    if across == 0 {
        mesh.disable_x_mesh();
    }
    mesh.draw().map_err(failed)
}

/// A ratio from its binary logarithm: a power of 2 as `1/8` or `4`.
fn ratio(log: f64) -> String {
    match log {
        log if log.fract() != 0.0 => format!("{:.2}", log.exp2()),
        log if log < 0.0 => format!("1/{}", (-log).exp2()),
        log => log.exp2().to_string(),
    }
}

fn line(chart: &mut Chart<'_, '_>, ends: [(f64, f64); 2]) -> Result<()> {
    chart.draw_series([PathElement::new(ends.to_vec(), ONE)]).map_err(failed)?;
    Ok(())
}

/// What plotters has drawn, with the links on top.
fn picture(svg: &str, (width, height): (u32, u32), links: &[Markup]) -> Markup {
    html! {
        div.box.plot tabindex="0" {
            svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img" {
                (PreEscaped(svg))
                @for link in links { (link) }
            }
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    anyhow!("cannot plot: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_ratios() {
        assert_eq!([0.0, -1.0, -5.0, 1.0, 3.0, 0.5].map(ratio), ["1", "1/2", "1/32", "2", "8", "1.41"]);
    }

    #[test]
    fn ranges_have_1_in_them() {
        assert_eq!(around([-2.0, -1.0].into_iter()), -2.2..0.2);
        assert_eq!(around([3.0].into_iter()), -0.2..3.2);
    }
}
