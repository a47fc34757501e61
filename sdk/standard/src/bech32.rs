//! Bech32 and Bech32m (BIP 173, BIP 350): encoding, decoding, and error location.
//!
//! The checksum is a BCH code over GF(32). Its generator has the consecutive roots e^997, e^998 and e^999, where e is a
//! primitive element of GF(1024). The remainder's values (syndromes) at these roots locate up to two wrong characters,
//! as in bitcoind's `LocateErrors`. Corrections are never suggested (BIP 173).

/// The characters of the data part by value.
const CHARSET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/// The longest string.
const MAX_LENGTH: usize = 90;
/// The length of the checksum.
const CHECKSUM_LENGTH: usize = 6;
/// The generator's multiples for the checksum's remainder (BIP 173).
const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
/// The order of GF(1024)'s multiplicative group.
const ORDER: usize = 1023;
/// The non-zero elements of GF(32) are the powers of e with exponents divisible by this.
const SUBFIELD_STEP: usize = 33;

/// The checksum variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Variant {
    /// BIP 173, for witness version 0.
    Bech32,
    /// BIP 350, for later versions.
    Bech32m,
}

impl Variant {
    /// The checksum remainder of a valid string.
    fn residue(self) -> u32 {
        match self {
            Self::Bech32 => 1,
            Self::Bech32m => 0x2bc8_30a3,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DecodedBech32 {
    pub(super) variant: Variant,
    /// The part before the separator, in lowercase.
    pub(super) prefix: String,
    /// The five-bit values after the separator, without the checksum.
    pub(super) data: Vec<u8>,
}

/// Why a string is invalid, in bitcoind's words, with the positions of wrong characters if known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bech32Error {
    pub(super) message: &'static str,
    pub(super) locations: Vec<usize>,
}

impl Bech32Error {
    fn new(message: &'static str, locations: Vec<usize>) -> Self {
        Self { message, locations }
    }
}

/// The reduction in [`step`] by the remainder's top five bits.
const REDUCTION: [u32; 32] = {
    let mut table = [0; 32];
    let mut top = 0;
    while top < 32 {
        let mut bit = 0;
        while bit < GENERATOR.len() {
            if top >> bit & 1 == 1 {
                table[top] ^= GENERATOR[bit];
            }
            bit += 1;
        }
        top += 1;
    }
    table
};

/// The remainder after one more five-bit value.
fn step(remainder: u32, value: u8) -> u32 {
    (remainder & 0x01ff_ffff) << 5 ^ u32::from(value) ^ REDUCTION[(remainder >> 25 & 31) as usize]
}

/// Appends the address of a witness program to `out`. The prefix is lowercase, the version at most 16.
pub(super) fn encode(prefix: &str, version: u8, program: &[u8], out: &mut String) {
    let variant = if version == 0 { Variant::Bech32 } else { Variant::Bech32m };
    // In bytes first: appending a character to a string costs more than encoding it.
    let mut text = [0_u8; MAX_LENGTH];
    let mut places = text.iter_mut();
    let mut put = |byte: u8| places.next().into_iter().for_each(|place| *place = byte);
    prefix.bytes().chain([b'1']).for_each(&mut put);
    let mut remainder = prefix_remainder(prefix.as_bytes());
    let mut put_value = |value: u8| {
        remainder = step(remainder, value);
        put(CHARSET[usize::from(value & 31)]);
    };
    put_value(version);
    let (mut pending, mut bits) = (0_u32, 0);
    for byte in program {
        pending = pending << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            put_value((pending >> bits & 31) as u8);
        }
    }
    if bits > 0 {
        put_value((pending << (5 - bits) & 31) as u8);
    }
    for _ in 0..CHECKSUM_LENGTH {
        remainder = step(remainder, 0);
    }
    remainder ^= variant.residue();
    for place in (0..CHECKSUM_LENGTH).rev() {
        put(CHARSET[(remainder >> (5 * place) & 31) as usize]);
    }
    let left = places.len();
    let written = text.get(..MAX_LENGTH - left).unwrap_or_default();
    out.push_str(std::str::from_utf8(written).unwrap_or_default());
}

pub(super) fn decode(text: &str) -> Result<DecodedBech32, Bech32Error> {
    let text = text.as_bytes();
    if text.len() > MAX_LENGTH {
        return Err(Bech32Error::new("Bech32 string too long", (MAX_LENGTH..text.len()).collect()));
    }
    let invalid = invalid_characters(text);
    if !invalid.is_empty() {
        return Err(Bech32Error::new("Invalid character or mixed case", invalid));
    }
    let separator = text.iter().rposition(|character| *character == b'1');
    let separator = separator.ok_or_else(|| Bech32Error::new("Missing separator", Vec::new()))?;
    if separator == 0 || separator + CHECKSUM_LENGTH >= text.len() {
        return Err(Bech32Error::new("Invalid separator position", vec![separator]));
    }
    let (prefix, data) = text.split_at(separator);
    let prefix = prefix.to_ascii_lowercase();
    let mut values = Vec::with_capacity(data.len());
    for (index, character) in data.iter().enumerate().skip(1) {
        let value = CHARSET.iter().position(|known| *known == character.to_ascii_lowercase());
        let value = value.and_then(|value| u8::try_from(value).ok());
        values.push(value.ok_or_else(|| Bech32Error::new("Invalid Base 32 character", vec![separator + index]))?);
    }
    let residue = checksum(&prefix, &values);
    for variant in [Variant::Bech32, Variant::Bech32m] {
        if residue == variant.residue() {
            values.truncate(values.len() - CHECKSUM_LENGTH);
            return Ok(DecodedBech32 { variant, prefix: String::from_utf8_lossy(&prefix).into_owned(), data: values });
        }
    }
    Err(locate(residue, text.len(), values.len()))
}

/// The positions of unprintable characters, and of letters whose case differs from the first letter's.
fn invalid_characters(text: &[u8]) -> Vec<usize> {
    let first_letter = text.iter().find(|character| character.is_ascii_alphabetic());
    let upper = first_letter.is_some_and(u8::is_ascii_uppercase);
    let is_invalid = |character: &u8| match character {
        b'a'..=b'z' => upper,
        b'A'..=b'Z' => !upper,
        _ => !(33..=126).contains(character),
    };
    text.iter().enumerate().filter(|(_, character)| is_invalid(character)).map(|(index, _)| index).collect()
}

/// The remainder of prefix and values. That of a valid string is [`Variant::residue`].
fn checksum(prefix: &[u8], values: &[u8]) -> u32 {
    values.iter().fold(prefix_remainder(prefix), |remainder, value| step(remainder, *value))
}

fn prefix_remainder(prefix: &[u8]) -> u32 {
    let high = prefix.iter().map(|character| character >> 5);
    let low = prefix.iter().map(|character| character & 31);
    high.chain([0]).chain(low).fold(1, step)
}

/// The error of an invalid string of `length` characters, `values` in the data part: the variant with fewer errors.
fn locate(residue: u32, length: usize, values: usize) -> Bech32Error {
    let field = Field::new();
    let mut best: Option<(&'static str, Vec<usize>)> = None;
    for (variant, message) in
        [(Variant::Bech32, "Invalid Bech32 checksum"), (Variant::Bech32m, "Invalid Bech32m checksum")]
    {
        let mut from_end = field.errors(residue ^ variant.residue(), values);
        from_end.sort_unstable_by(|a, b| b.cmp(a));
        let locations: Vec<usize> = from_end.into_iter().map(|position| length - position - 1).collect();
        let better = best.as_ref().is_none_or(|(_, found)| locations.len() < found.len());
        if !locations.is_empty() && better {
            best = Some((message, locations));
        }
    }
    let (message, locations) = best.unwrap_or(("Invalid checksum", Vec::new()));
    Bech32Error::new(message, locations)
}

/// GF(1024) as an extension of GF(32), with logarithms to the base e. GF(32) is defined by x^5 + x^3 + 1, and e is a
/// root of x^2 + 9x + 23 over it. The upper five bits of an element are the coefficient of e.
struct Field {
    /// e^i by i.
    power: Vec<usize>,
    /// i by e^i; `None` for 0.
    log: Vec<Option<usize>>,
}

impl Field {
    fn new() -> Self {
        let mut field = Self { power: Vec::with_capacity(ORDER), log: vec![None; ORDER + 1] };
        let mut element = 1;
        for exponent in 0..ORDER {
            field.power.push(element);
            if let Some(log) = field.log.get_mut(element) {
                *log = Some(exponent);
            }
            let (upper, lower) = (element >> 5, element & 31);
            element = (multiply_gf32(upper, 9) ^ lower) << 5 | multiply_gf32(upper, 23);
        }
        field
    }

    /// e^exponent.
    fn power(&self, exponent: usize) -> usize {
        self.power.get(exponent % ORDER).copied().unwrap_or_default()
    }

    fn log(&self, element: usize) -> Option<usize> {
        self.log.get(element).copied().flatten()
    }

    /// `element` times e^exponent.
    fn shift(&self, element: usize, exponent: usize) -> usize {
        self.log(element).map_or(0, |log| self.power(log + exponent))
    }

    /// The value at e^root of the polynomial with a remainder's five-bit groups as coefficients.
    fn syndrome(&self, residue: u32, root: usize) -> usize {
        let coefficient = |place: usize| (residue >> (5 * place)) as usize & 31;
        (0..CHECKSUM_LENGTH).fold(0, |sum, place| sum ^ self.shift(coefficient(place), root * place))
    }

    /// The positions from the end of the one or two errors among `length` values that explain a remainder; else empty.
    fn errors(&self, residue: u32, length: usize) -> Vec<usize> {
        let syndromes = [997, 998, 999].map(|root| self.syndrome(residue, root));
        if let [Some(log0), Some(log1), Some(log2)] = syndromes.map(|syndrome| self.log(syndrome))
            && (2 * log1 + 2 * ORDER - log0 - log2).is_multiple_of(ORDER)
        {
            // A single error v at position p has the syndromes v e^(997p), v e^(998p), v e^(999p).
            let place = (log1 + ORDER - log0) % ORDER;
            let in_subfield = (log0 + (ORDER - 997) * place).is_multiple_of(SUBFIELD_STEP);
            return if place < length && in_subfield { vec![place] } else { Vec::new() };
        }
        (0..length)
            .find_map(|first| self.second_error(syndromes, first, length).map(|second| vec![first, second]))
            .unwrap_or_default()
    }

    /// The position of the second of two errors if the first is at `first`.
    fn second_error(&self, [s0, s1, s2]: [usize; 3], first: usize, length: usize) -> Option<usize> {
        // Without the first error, w e^(997q) (e^q + e^p) remains, and the same with 998. Their quotient is e^q.
        let low = self.log(s1 ^ self.shift(s0, first))?;
        let high = self.log(s2 ^ self.shift(s1, first))?;
        let second = (high + ORDER - low) % ORDER;
        if second >= length || second == first {
            return None;
        }
        let other = self.log(s1 ^ self.shift(s0, second))?;
        let inverse = ORDER - self.log(self.power(first) ^ self.power(second))?;
        // Both errors must be five-bit values.
        let in_subfield =
            |log: usize, place: usize| (log + inverse + (ORDER - 997) * place).is_multiple_of(SUBFIELD_STEP);
        (in_subfield(low, second) && in_subfield(other, first)).then_some(second)
    }
}

fn multiply_gf32(a: usize, b: usize) -> usize {
    let mut product = 0;
    let mut shifted = a;
    for bit in 0..5 {
        if b >> bit & 1 == 1 {
            product ^= shifted;
        }
        shifted <<= 1;
        if shifted & 32 != 0 {
            shifted ^= 0b10_1001;
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

    fn with(places: &[(usize, char)]) -> String {
        let mut characters: Vec<char> = VALID.chars().collect();
        for (place, character) in places {
            characters[*place] = *character;
        }
        characters.into_iter().collect()
    }

    fn decode_error(text: &str) -> (&'static str, Vec<usize>) {
        let error = decode(text).unwrap_err();
        (error.message, error.locations)
    }

    #[test]
    fn valid_strings_are_decoded() {
        let decoded = decode(&VALID.to_uppercase()).unwrap();
        assert_eq!((decoded.variant, &*decoded.prefix, decoded.data.len()), (Variant::Bech32, "bcrt", 33));
        assert_eq!(decode("bcrt1pfeesnyr2tx").unwrap().variant, Variant::Bech32m);
    }

    #[test]
    fn every_pair_of_errors_is_located() {
        for first in 5..VALID.len() {
            let change = |place: usize| if VALID.as_bytes()[place] == b'q' { 'l' } else { 'q' };
            assert_eq!(decode_error(&with(&[(first, change(first))])), ("Invalid Bech32 checksum", vec![first]));
            for second in first + 1..VALID.len() {
                let text = with(&[(first, change(first)), (second, change(second))]);
                assert_eq!(decode_error(&text), ("Invalid Bech32 checksum", vec![first, second]), "{text}");
            }
        }
    }

    #[test]
    fn bech32_faults_beside_the_checksum_are_named() {
        for (text, message, locations) in [
            ("bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt081", "Invalid separator position", vec![43]),
            ("bcrt1Qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", "Invalid character or mixed case", vec![5]),
            ("bcrt1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4", "Invalid Base 32 character", vec![61]),
            ("bcrt", "Missing separator", vec![]),
        ] {
            assert_eq!(decode_error(text), (message, locations), "{text}");
        }
        assert_eq!(decode_error(&"bcrt1".repeat(20)).1, (90..100).collect::<Vec<_>>());
    }
}
