//! A partner's resend arrives as a new message with a new id; only the interchange header still
//! says that it is the same business document. This crate reads that identity from the raw text or
//! bytes of an X12 or EDIFACT interchange, and turns it into the two parts of an inbox key.
//!
//! It does no I/O, never panics, and translates nothing: apart from the header it looks only for
//! the places where an interchange ends and another one begins.
//!
//! ```
//! use lambda_inbox_edi::{KeyOptions, identity};
//!
//! let body = b"UNB+UNOA:1+ACMESUPPLY:ZZ+4012345000009:14+260105:0930+417'UNZ+0+417'";
//! let interchange = identity(body)?;
//! let options = KeyOptions::default();
//! assert_eq!(interchange.source(&options), "edifact:P:ZZ:ACMESUPPLY:14:4012345000009");
//! assert_eq!(interchange.message_id(&options), "417");
//! # Ok::<(), lambda_inbox_edi::EdiError>(())
//! ```
//!
//! # What identifies an interchange
//!
//! - **X12**: ISA05, ISA06, ISA07, ISA08 and ISA13 ([X12 RFI 723]). Read at the fixed offsets of
//!   the 105-character header, so a separator sign inside an id does no harm. Ids lose their
//!   trailing blanks, which are padding; ISA13 is nine digits.
//! - **EDIFACT**: S002, S003 and 0020 in full ([JSWG], UNB note 2). 0020 is text: `00000417` is
//!   not `417`. Ids lose trailing blanks, which ISO 9735 calls non-significant in elements of
//!   variable length; 0020 is kept exactly as written.
//! - Both: whether it is **production or test** (ISA15, 0035), because many partners number the
//!   two from the same range. Date and time tell a number apart from its reuse years later, if
//!   [`KeyOptions::with_date_time`] asks for them.
//!
//! Group and message numbers (GS06, ST02, UNH) repeat across interchanges and are not used, nor is
//! anything of the trailer: its number may be unpadded, and it may be missing.
//!
//! # One key, one interchange
//!
//! A body that holds two interchanges must not pass for one of them. There are three functions:
//!
//! | function | reads | on a second interchange |
//! |---|---|---|
//! | [`first_header`] | the header only, at most 2 KiB after leading blanks | does not look: for display and routing |
//! | [`identity`] | the body once, by vectorised search | refuses: the one to make keys with |
//! | [`identities`] | the body once | lists all, in order |
//!
//! [`scan`] says how an interchange's end and a further header are recognised.
//!
//! # What is tolerated
//!
//! - Before a header and after a trailer: a byte order mark, white space (space, tab, CR, LF, form
//!   feed) and stray apostrophes; after a trailer also stray segment terminators. Nothing else;
//!   tags must be upper case.
//! - Between UNA and UNB, and between segments: a byte order mark and white space.
//! - A missing trailer, a missing last terminator, and a missing ISA16 (with or without the
//!   separator before it).
//! - Any syntax identifier in S001. EDIFACT without UNA uses the standard signs, or those of
//!   character set level B (IS1, IS3, IS4) if UNB is followed by IS3.
//!
//! A line end **inside** a header, as hard wrapping at 80 columns leaves, is refused: without
//! unwrapping the header cannot be told from one that lost its terminator.
//!
//! # Character encoding
//!
//! A header whose bytes are valid UTF-8 is read as UTF-8, any other as Latin-1 (ISO 8859-1), so the
//! same id in either encoding gives the same identity. The rule has one ambiguity: Latin-1 bytes
//! that happen to be valid UTF-8 (`Ã¼` as C3 BC) are read as UTF-8 (`ü`). Bytes of any other code
//! page are read as Latin-1 too: equal bytes still give equal identities, but not that of the same
//! text in UTF-8. The offsets of X12 count characters, not bytes.
//!
//! [X12 RFI 723]: https://rfi.x12.org/Request/Details/723
//! [JSWG]: https://www.gefeg.com/jswg/v4/se/sed.htm

mod blind;
mod control;
mod edifact;
mod embedded;
mod error;
mod header;
mod interchange;
mod key;
mod party;
mod refusal;
pub mod scan;
mod segments;
mod service;
mod signs;
mod text;
mod values;
mod x12;

pub use blind::line_end_blind;
pub use control::x12_control_number;
pub use error::{EdiError, Excerpt, HeaderFault, InvalidValue};
pub use interchange::{Interchange, Standard, Usage};
pub use key::KeyOptions;
pub use party::Party;
pub use scan::{first_header, identities, identity};
