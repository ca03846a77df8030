fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let d: slowpath_report::Diagnosis = serde_json::from_str(&text).unwrap();
    let style = slowpath_report::terminal::Style { unicode: true, ..slowpath_report::terminal::Style::PLAIN };
    print!("{}", slowpath_report::terminal::diagnosis(&d, &style));
}
