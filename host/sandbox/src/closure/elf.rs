//! The libraries that an ELF file needs.

use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};

/// ELF's machine number, and whether the file is little-endian.
pub(super) type Machine = (u16, bool);

pub(super) struct Needs {
    pub(super) machine: Machine,
    /// The loader. Libraries rarely name it.
    pub(super) interpreter: Option<PathBuf>,
    pub(super) needed: Vec<String>,
    pub(super) rpath: Option<String>,
    pub(super) runpath: Option<String>,
}

pub(super) fn read(path: &Path) -> Result<Needs, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    // Reads only some kilobytes of a file that may have hundreds of megabytes.
    let file = ReadCache::new(file);
    let refuse = |reason: &str| format!("{} is not a shared library: {reason}", path.display());
    if !matches!(FileKind::parse(&file), Ok(FileKind::Elf64)) {
        return Err(refuse("it is not a 64-bit ELF file"));
    }
    needs(&file).map_err(|reason| refuse(&reason))?.ok_or_else(|| refuse("it has no dynamic section"))
}

/// `None` without a dynamic section.
fn needs<'a>(bytes: impl ReadRef<'a>) -> Result<Option<Needs>, String> {
    let text = |error: object::Error| error.to_string();
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(text)?;
    let endian = header.endian().map_err(text)?;
    let segments = header.program_headers(endian, bytes).map_err(text)?;
    let mut interpreter = None;
    let mut dynamic = None;
    for segment in segments {
        if let Some(path) = segment.interpreter(endian, bytes).map_err(text)? {
            interpreter = Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()));
        }
        if let Some(entries) = segment.dynamic(endian, bytes).map_err(text)? {
            dynamic = Some(entries);
        }
    }
    let Some(dynamic) = dynamic else { return Ok(None) };
    let value =
        |tag: u32| dynamic.iter().find(|entry| entry.tag32(endian) == Some(tag)).map(|entry| entry.d_val(endian));
    let (table, size) = (value(elf::DT_STRTAB).unwrap_or(0), value(elf::DT_STRSZ).unwrap_or(0));
    // Read by its file offset: asking for the segment's data would read the whole segment.
    let place = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD).find_map(|segment| {
        let within = table.checked_sub(segment.p_vaddr(endian)).filter(|within| *within < segment.p_filesz(endian))?;
        segment.p_offset(endian).checked_add(within)
    });
    let strings: &[u8] = place.and_then(|place| bytes.read_bytes_at(place, size).ok()).unwrap_or_default();
    let string = |offset: u64| {
        let rest = strings.get(usize::try_from(offset).ok()?..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok().map(str::to_owned)
    };
    let mut needed = Vec::new();
    for entry in dynamic.iter().take_while(|entry| entry.tag32(endian) != Some(elf::DT_NULL)) {
        if entry.tag32(endian) == Some(elf::DT_NEEDED) {
            needed.push(string(entry.d_val(endian)).ok_or("a needed library has no name")?);
        }
    }
    Ok(Some(Needs {
        machine: (header.e_machine(endian), header.is_big_endian()),
        interpreter,
        needed,
        rpath: value(elf::DT_RPATH).and_then(string),
        runpath: value(elf::DT_RUNPATH).and_then(string),
    }))
}
