//! Draws how times grow with a number: an SVG with a logarithmic axis each way, so that a line of slope one is
//! linear growth.

use std::fmt::Write as _;

/// A line of the picture: its name, and its points as sizes and nanoseconds.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// Draws lines under a title. `axis` says what the sizes count.
pub(super) fn draw(title: &str, axis: &str, lines: &[Line]) -> Option<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = Scale::of(points().map(|point| point.0), LEFT, WIDTH - RIGHT)?;
    let up = Scale::of(points().map(|point| point.1), HEIGHT - BOTTOM, TOP)?;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"24\" font-size=\"16\">{title}</text>\n"
    );
    for decade in across.decades() {
        let (x, bottom) = (across.at(decade), HEIGHT - BOTTOM);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>");
        let label = bottom + 20.0;
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{label}\" text-anchor=\"middle\">{}</text>",
            grouped(decade)
        );
    }
    for decade in up.decades() {
        let (y, right) = (up.at(decade), WIDTH - RIGHT);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/>");
        let (x, below) = (LEFT - 8.0, y + 4.0);
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{below:.1}\" text-anchor=\"end\">{}</text>",
            short_time(decade)
        );
    }
    let (middle, last) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0);
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{last}\" text-anchor=\"middle\">{axis}</text>");
    let mut labels = labels(lines, &across, &up);
    spread(&mut labels);
    for (number, line) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let places: Vec<_> =
            line.points.iter().map(|(x, y)| format!("{:.1} {:.1}", across.at(*x), up.at(*y))).collect();
        let path = places.join("L");
        let _ = writeln!(svg, "<path d=\"M{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        for (x, y) in &line.points {
            let (x, y) = (across.at(*x), up.at(*y));
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        if let Some((_, x, y)) = labels.iter().find(|(of, ..)| *of == number) {
            let (x, y, name) = (x + 8.0, y + 4.0, line.name);
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>");
        }
    }
    Some(svg + "</svg>\n")
}

/// Returns the number of each line and the place of its last point.
fn labels(lines: &[Line], across: &Scale, up: &Scale) -> Vec<(usize, f64, f64)> {
    let last =
        |(number, line): (usize, &Line)| line.points.last().map(|(x, y)| (number, across.at(*x), up.at(*y)));
    lines.iter().enumerate().filter_map(last).collect()
}

/// Moves labels down until none covers another.
fn spread(labels: &mut [(usize, f64, f64)]) {
    labels.sort_by(|a, b| a.2.total_cmp(&b.2));
    for index in 1..labels.len() {
        let above = labels[index - 1].2;
        labels[index].2 = labels[index].2.max(above + LINE_HEIGHT);
    }
}

/// A logarithmic axis over whole decades.
struct Scale {
    /// The exponents of the first and the last decade.
    from: i32,
    to: i32,
    /// Their places.
    start: f64,
    end: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Option<Self> {
        let logarithms: Vec<_> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let least = logarithms.iter().copied().reduce(f64::min)?;
        let most = logarithms.iter().copied().reduce(f64::max)?;
        #[expect(clippy::cast_possible_truncation, reason = "logarithms of times and counts are small")]
        let (from, to) = ((least + 1e-9).floor() as i32, (most - 1e-9).ceil() as i32);
        Some(Self { from, to: to.max(from + 1), start, end })
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.from..=self.to).map(|exponent| 10_f64.powi(exponent))
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        self.start + share * (self.end - self.start)
    }
}

fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a decade of nanoseconds.
fn short_time(nanoseconds: f64) -> String {
    let (number, unit) = match nanoseconds {
        ns if ns < 999.0 => (ns, "ns"),
        ns if ns < 999e3 => (ns / 1e3, "µs"),
        ns if ns < 999e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{number:.0} {unit}")
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
/// Room for the names of the lines.
const RIGHT: f64 = 210.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 55.0;
const LINE_HEIGHT: f64 = 16.0;
/// Apart for most who do not see all colours.
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decade_more_is_as_far_anywhere() {
        let scale = Scale::of([10.0, 1_000.0].into_iter(), 0.0, 100.0).unwrap();
        assert_eq!([10.0, 100.0, 1_000.0].map(|value| scale.at(value).round()), [0.0, 50.0, 100.0]);
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let mut labels = [(0, 0.0, 50.0), (1, 0.0, 48.0), (2, 0.0, 200.0)];
        spread(&mut labels);
        assert_eq!(labels, [(1, 0.0, 48.0), (0, 0.0, 64.0), (2, 0.0, 200.0)]);
    }

    #[test]
    fn without_a_point_there_is_no_picture() {
        assert_eq!(draw("title", "services", &[Line { name: "a", points: Vec::new() }]), None);
    }
}
