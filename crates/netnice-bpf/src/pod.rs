// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! C structures and texts as bytes.

use std::mem;

/// A text of the kernel's, up to its zero.
pub(crate) fn text(chars: &[std::ffi::c_char]) -> String {
    chars.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect()
}

/// Writes a text that is shorter than the place for it, which is zero.
pub(crate) fn put_text(to: &mut [std::ffi::c_char], text: &str) {
    assert!(text.len() < to.len(), "{text} is too long");
    for (to, from) in to.iter_mut().zip(text.bytes()) {
        *to = from as _;
    }
}

/// Plain C structures from headers of this project, as bytes for a map.
pub(crate) fn bytes<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: T is a C structure of integers without padding (checked by the kernel against its
    // own copy of the type), borrowed for as long as the bytes.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), mem::size_of::<T>()) }
}

/// The inverse of [`bytes`]; None where the length does not fit.
pub(crate) fn parse<T: Copy>(data: &[u8]) -> Option<T> {
    // SAFETY: any bits are valid integers, and the length is checked.
    (data.len() == mem::size_of::<T>())
        .then(|| unsafe { data.as_ptr().cast::<T>().read_unaligned() })
}

/// Bytes that begin where 64-bit words may, as libbpf reads them from an object.
pub(crate) struct Words {
    of: Vec<u64>,
    length: usize,
}

impl Words {
    pub(crate) fn of(bytes: &[u8]) -> Words {
        let word = |part: &[u8]| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_ne_bytes(word)
        };
        Words { of: bytes.chunks(8).map(word).collect(), length: bytes.len() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `of` has these bytes, borrowed for as long
        unsafe { std::slice::from_raw_parts(self.of.as_ptr().cast(), self.length) }
    }
}
