// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The content of every flow: pseudo-random bytes computable at any position.
//!
//! The eight bytes at positions 8k to 8k+7 are the little-endian value of a mix of the seed and k
//! (the output function of SplitMix64). It needs no memory per flow, about ten instructions per
//! eight bytes, and has no period, so a flipped, missing, repeated or displaced byte shows.

/// 2^64 divided by the golden ratio: consecutive counters differ in many bits.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64; every input bit changes about half of the output bits.
pub fn mix(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The seed of part `index` of whatever has the seed `seed`.
pub fn derive(seed: u64, index: u64) -> u64 {
    mix(mix(seed) ^ index.wrapping_mul(STEP))
}

/// Writes the content with `seed` from byte `position` on into `out`.
pub fn fill(seed: u64, position: u64, out: &mut [u8]) {
    let word = |index: u64| mix(seed.wrapping_add(index.wrapping_mul(STEP))).to_le_bytes();
    let skip = (position % 8) as usize;
    let head_length = ((8 - skip) % 8).min(out.len());
    let (head, rest) = out.split_at_mut(head_length);
    head.copy_from_slice(&word(position / 8)[skip..][..head_length]);
    let mut index = position.div_ceil(8);
    let mut words = rest.chunks_exact_mut(8);
    for eight in &mut words {
        eight.copy_from_slice(&word(index));
        index += 1;
    }
    let tail = words.into_remainder();
    tail.copy_from_slice(&word(index)[..tail.len()]);
}

/// Checks a stream of bytes against the content, piece by piece.
#[derive(Debug, Clone)]
pub struct Checker {
    seed: u64,
    received: u64,
    wrong_at: Option<u64>,
}

impl Checker {
    /// Expects the content with `seed` from its beginning.
    pub fn new(seed: u64) -> Self {
        Self { seed, received: 0, wrong_at: None }
    }

    /// Takes the next bytes of the stream. After the first wrong byte it only counts.
    pub fn take(&mut self, bytes: &[u8]) {
        let mut expected = [0; 4096];
        for part in bytes.chunks(expected.len()) {
            if self.wrong_at.is_none() {
                let expected = &mut expected[..part.len()];
                fill(self.seed, self.received, expected);
                if part != expected {
                    let same = part.iter().zip(expected).take_while(|(a, b)| a == b);
                    self.wrong_at = Some(self.received + same.count() as u64);
                }
            }
            self.received += part.len() as u64;
        }
    }

    /// Bytes taken so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Position of the first wrong byte.
    pub fn wrong_at(&self) -> Option<u64> {
        self.wrong_at
    }

    /// Bytes before the first wrong one.
    pub fn intact(&self) -> u64 {
        self.wrong_at.unwrap_or(self.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 200_003;

    fn content() -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        fill(7, 0, &mut bytes);
        bytes
    }

    /// First wrong byte when the stream arrives in pieces of uneven sizes.
    fn wrong_at(bytes: &[u8]) -> Option<u64> {
        let mut checker = Checker::new(7);
        let mut rest = bytes;
        for size in [1, 7, 8, 1000, 13].into_iter().cycle() {
            let (piece, next) = rest.split_at(size.min(rest.len()));
            checker.take(piece);
            rest = next;
            if rest.is_empty() {
                break;
            }
        }
        assert_eq!(checker.received(), bytes.len() as u64);
        checker.wrong_at()
    }

    #[test]
    fn the_content_is_the_same_in_every_version_and_on_every_platform() {
        let mut bytes = [0; 12];
        fill(1, 0, &mut bytes);
        assert_eq!(bytes, [229, 5, 11, 16, 29, 22, 146, 86, 193, 92, 2, 137]);
    }

    #[test]
    fn content_filled_in_any_pieces_is_the_same() {
        let whole = content();
        for (from, to) in [(0, 1), (3, 5), (5, 29), (8, 24), (65_535, 65_537), (9, LENGTH)] {
            let mut part = vec![0; to - from];
            fill(7, from as u64, &mut part);
            assert_eq!(part, whole[from..to]);
        }
    }

    #[test]
    fn intact_content_passes() {
        assert_eq!(wrong_at(&content()), None);
    }

    #[test]
    fn a_flipped_bit_is_found_where_it_is() {
        for at in [0, 1, 8, 65_536, 100_001, LENGTH - 1] {
            let mut bytes = content();
            bytes[at] ^= 1;
            assert_eq!(wrong_at(&bytes), Some(at as u64));
        }
    }

    #[test]
    fn a_missing_byte_is_found() {
        for at in [0, 8, 70_000, LENGTH - 100] {
            let mut bytes = content();
            bytes.remove(at);
            let found = wrong_at(&bytes).expect("a missing byte is found");
            assert!((at as u64..at as u64 + 16).contains(&found), "{at}: {found}");
        }
    }

    #[test]
    fn a_repeated_byte_is_found() {
        for at in [0, 8, 70_000, LENGTH - 100] {
            let mut bytes = content();
            bytes.insert(at, bytes[at]);
            let found = wrong_at(&bytes).expect("a repeated byte is found");
            assert!((at as u64..at as u64 + 16).contains(&found), "{at}: {found}");
        }
    }

    #[test]
    fn a_displaced_block_is_found_whatever_its_size() {
        for size in [8, 4096, 65_536] {
            let mut bytes = content();
            bytes.drain(1000..1000 + size);
            assert_eq!(wrong_at(&bytes), Some(1000));
        }
    }

    #[test]
    fn another_seed_is_found_at_once() {
        let mut bytes = [0; 16];
        fill(8, 0, &mut bytes);
        assert!(wrong_at(&bytes).expect("the content of another seed is wrong") < 8);
    }
}
