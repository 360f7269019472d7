//! Ids repeat across qualifiers: `123456789` of one code list is not that of another.

/// Sender or receiver of an interchange.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    qualifier: String,
    id: String,
    internal: Option<String>,
    internal_sub: Option<String>,
}

impl Party {
    /// A party by its qualifier (empty for none) and id. Trailing blanks of both are padding and
    /// go; leading blanks stay.
    pub fn new(qualifier: &str, id: &str) -> Self {
        Self {
            qualifier: unpadded(qualifier).to_owned(),
            id: unpadded(id).to_owned(),
            internal: None,
            internal_sub: None,
        }
    }

    /// Adds EDIFACT's internal routing ids, 0008 and 0042 of a sender, 0014 and 0046 of a receiver.
    /// An empty one is an absent one.
    pub fn with_internal(self, id: &str, sub: &str) -> Self {
        let present = |text: &str| Some(unpadded(text).to_owned()).filter(|text| !text.is_empty());
        Self {
            internal: present(id),
            internal_sub: present(sub),
            ..self
        }
    }

    /// ISA05 or ISA07; EDIFACT 0007. Empty if EDIFACT has none.
    pub fn qualifier(&self) -> &str {
        &self.qualifier
    }

    /// ISA06 or ISA08; EDIFACT 0004 or 0010. Never empty in an [`Interchange`](crate::Interchange).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// EDIFACT 0008 or 0014.
    pub fn internal(&self) -> Option<&str> {
        self.internal.as_deref()
    }

    /// EDIFACT 0042 or 0046 (syntax version 4).
    pub fn internal_sub(&self) -> Option<&str> {
        self.internal_sub.as_deref()
    }
}

fn unpadded(text: &str) -> &str {
    text.trim_end_matches(' ')
}
