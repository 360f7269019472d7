//! `cargo bench -p lambda-inbox-edi`: what a key costs for a body of 1 MB, the largest that SQS
//! carries. Throughput is stated over the whole body, also where only its header is read.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use lambda_inbox_edi::{first_header, identities, identity, line_end_blind};

const BODY_BYTES: usize = 1_000_000;

fn main() {
    divan::main();
}

/// The shapes of body that the functions are measured on.
#[derive(Clone, Copy, Debug)]
enum Shape {
    X12,
    X12LineFeed,
    Edifact,
    /// Every second character is released: the worst case for following segments.
    EdifactReleased,
    /// Header-like text all through: the worst case for the search within segments.
    EdifactLookalikes,
}

const SHAPES: [Shape; 5] = [
    Shape::X12,
    Shape::X12LineFeed,
    Shape::Edifact,
    Shape::EdifactReleased,
    Shape::EdifactLookalikes,
];

fn body(shape: Shape) -> Vec<u8> {
    const ISA: &str = "ISA*00*          *00*          *ZZ*ACMESUPPLY     *01*123456789      \
                       *260105*0930*^*00501*000000905*0*P*:";
    const UNB: &str = "UNB+UNOC:3+ACMESUPPLY:ZZ+4012345000009:14+260105:0930+417'";
    let (head, segment, tail) = match shape {
        Shape::X12 => (
            format!("{ISA}~"),
            "N1*BY*ISABEL AND SONS*92*4711~",
            "IEA*1*000000905~",
        ),
        Shape::X12LineFeed => (
            format!("{ISA}\n"),
            "N1*BY*ISABEL AND SONS*92*4711\n",
            "IEA*1*000000905\n",
        ),
        Shape::Edifact => (UNB.to_owned(), "NAD+BY+4012345000009::9'\r\n", "UNZ+1+417'"),
        Shape::EdifactReleased => (UNB.to_owned(), "FTX+AAI+++?+?:?'??'", "UNZ+1+417'"),
        Shape::EdifactLookalikes => (UNB.to_owned(), "UNB+UNOA:1+A?'+B+1+", "'UNZ+1+417'"),
    };
    let filler = if matches!(shape, Shape::EdifactLookalikes) {
        "FTX+"
    } else {
        ""
    };
    let count = (BODY_BYTES - head.len() - filler.len() - tail.len()) / segment.len();
    [&head, filler, &segment.repeat(count), tail]
        .concat()
        .into_bytes()
}

fn measure<T>(bencher: Bencher<'_, '_>, shape: Shape, read: impl Fn(&[u8]) -> T + Sync) {
    let body = body(shape);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| read(black_box(&body)));
}

#[divan::bench(args = SHAPES)]
fn header_only(bencher: Bencher<'_, '_>, shape: Shape) {
    measure(bencher, shape, first_header);
}

#[divan::bench(args = SHAPES)]
fn proof_of_a_single_interchange(bencher: Bencher<'_, '_>, shape: Shape) {
    measure(bencher, shape, identity);
}

#[divan::bench(args = SHAPES)]
fn line_end_blind_pieces(bencher: Bencher<'_, '_>, shape: Shape) {
    measure(bencher, shape, |body| {
        let mut bytes = 0;
        line_end_blind(body, |piece| bytes += black_box(piece).len());
        bytes
    });
}

/// Thousands of small interchanges in one body.
#[divan::bench]
fn all_identities(bencher: Bencher<'_, '_>) {
    let one = "UNB+UNOC:3+ACMESUPPLY:ZZ+4012345000009:14+260105:0930+417'UNZ+0+417'\r\n";
    let body = one.repeat(BODY_BYTES / one.len()).into_bytes();
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| identities(black_box(&body)));
}
