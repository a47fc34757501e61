//! A C program that asks every function of every service with sampled values, and what it must print.
//!
//! What the values' encoding is, is said here from their description alone: neither by the Rust code that encodes messages
//! nor by the generator of the header.

use std::collections::HashMap;
use std::fmt::Write;

use super::super::names::{index, member, message_type, service, snake, stem};
use super::super::types::Types;
use super::super::{EVENT, SERVICES, types};
use outrigger_service::wire::{FieldShape, FunctionShape, ServiceShape, Shape};

/// How many samples each function is asked with.
const SAMPLES: usize = 4;

/// What the members of a tuple are called.
const ORDINALS: [&str; 3] = ["first", "second", "third"];

/// A program and its output.
pub struct Sample {
    pub source: String,
    pub output: String,
}

/// A value of a message.
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    Optional(Option<Box<Value>>),
    Several(Vec<Value>),
    Choice(usize, Vec<Value>),
}

/// Makes values up: numbers from a linear congruential generator, and one variant after the other.
struct Sampler {
    state: u64,
    variants: HashMap<&'static str, usize>,
}

impl Sampler {
    fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state ^ self.state >> 33
    }

    fn fields(&mut self, fields: &'static [FieldShape]) -> Vec<Value> {
        fields.iter().map(|field| self.value(field.shape)).collect()
    }

    fn value(&mut self, shape: &'static Shape) -> Value {
        match shape {
            Shape::Bool => Value::Number(self.number() % 2),
            Shape::U8 => Value::Number(self.number() & 0xff),
            Shape::U16 => Value::Number(self.number() & 0xffff),
            Shape::U32 | Shape::I32 => Value::Number(self.number() & 0xffff_ffff),
            Shape::U64 | Shape::I64 => Value::Number(self.number()),
            Shape::Array(len) => Value::Bytes((0..*len).map(|_| self.number() as u8).collect()),
            Shape::Hash => Value::Bytes((0..32).map(|_| self.number() as u8).collect()),
            Shape::Text | Shape::Secret => {
                Value::Bytes((0..self.number() % 90).map(|_| b'a' + (self.number() % 26) as u8).collect())
            }
            Shape::ByteString => Value::Bytes((0..self.number() % 90).map(|_| self.number() as u8).collect()),
            Shape::Option(inner) if !self.number().is_multiple_of(3) => {
                Value::Optional(Some(Box::new(self.value(inner))))
            }
            Shape::Option(_) => Value::Optional(None),
            Shape::List(item) => Value::Several((0..self.number() % 4).map(|_| self.value(item)).collect()),
            Shape::Framed(inner) => self.value(inner),
            Shape::Tuple(items) => Value::Several(items.iter().map(|item| self.value(item)).collect()),
            Shape::Struct(known) => Value::Several(self.fields(known.fields)),
            Shape::Enum(known) => {
                let next = self.variants.entry(known.name).or_default();
                let chosen = *next % known.variants.len();
                *next += 1;
                Value::Choice(chosen, self.fields(known.variants[chosen].fields))
            }
        }
    }
}

/// The encoding of a value.
fn encode(shape: &'static Shape, value: &Value, out: &mut Vec<u8>) {
    let length = |len: usize, out: &mut Vec<u8>| out.extend((len as u32).to_le_bytes());
    match (shape, value) {
        (Shape::Bool | Shape::U8, Value::Number(number)) => out.push(*number as u8),
        (Shape::U16, Value::Number(number)) => out.extend((*number as u16).to_le_bytes()),
        (Shape::U32 | Shape::I32, Value::Number(number)) => out.extend((*number as u32).to_le_bytes()),
        (Shape::U64 | Shape::I64, Value::Number(number)) => out.extend(number.to_le_bytes()),
        (Shape::Array(_) | Shape::Hash, Value::Bytes(bytes)) => out.extend(bytes),
        (Shape::Text | Shape::Secret | Shape::ByteString, Value::Bytes(bytes)) => {
            length(bytes.len(), out);
            out.extend(bytes);
        }
        (Shape::Option(inner), Value::Optional(value)) => {
            out.push(u8::from(value.is_some()));
            value.iter().for_each(|value| encode(inner, value, out));
        }
        (Shape::List(item), Value::Several(values)) => {
            length(values.len(), out);
            values.iter().for_each(|value| encode(item, value, out));
        }
        (Shape::Framed(inner), value) => {
            let mut framed = Vec::new();
            encode(inner, value, &mut framed);
            // What a newer writer appended.
            framed.push(0xee);
            length(framed.len(), out);
            out.extend(framed);
        }
        (Shape::Tuple(items), Value::Several(values)) => {
            items.iter().zip(values).for_each(|(item, value)| encode(item, value, out));
        }
        (Shape::Struct(known), Value::Several(values)) => encode_fields(known.fields, values, out),
        (Shape::Enum(known), Value::Choice(chosen, values)) => {
            out.push(known.variants[*chosen].tag);
            encode_fields(known.variants[*chosen].fields, values, out);
        }
        _ => unreachable!("the value was made for the shape"),
    }
}

fn encode_fields(fields: &'static [FieldShape], values: &[Value], out: &mut Vec<u8>) {
    fields.iter().zip(values).for_each(|(field, value)| encode(field.shape, value, out));
}

/// Where the message of an older writer ends: before each field that was added since.
fn older_ends(shape: &'static Shape, value: &Value, len: usize) -> Vec<usize> {
    let (fields, values) = match (shape, value) {
        (Shape::Struct(known), Value::Several(values)) => (known.fields, values),
        (Shape::Enum(known), Value::Choice(chosen, values)) => (known.variants[*chosen].fields, values),
        _ => return Vec::new(),
    };
    let mut end = len;
    let added = fields.iter().zip(values).rev().take_while(|(field, _)| field.since > 0);
    let ends = added.map(|(field, value)| {
        let mut bytes = Vec::new();
        encode(field.shape, value, &mut bytes);
        end -= bytes.len();
        end
    });
    ends.collect()
}

/// A value as the program prints it.
fn print(shape: &'static Shape, value: &Value) -> String {
    let all = |shapes: Vec<&'static Shape>, values: &[Value]| {
        shapes.into_iter().zip(values).map(|(shape, value)| print(shape, value)).collect::<Vec<_>>().join(" ")
    };
    let fields = |fields: &'static [FieldShape]| fields.iter().map(|field| field.shape).collect::<Vec<_>>();
    match (shape, value) {
        (Shape::I32, Value::Number(number)) => (*number as u32 as i32).to_string(),
        (Shape::I64, Value::Number(number)) => (*number as i64).to_string(),
        (_, Value::Number(number)) => number.to_string(),
        (_, Value::Bytes(bytes)) => {
            bytes.iter().fold(String::from("<"), |out, byte| out + &format!("{byte:02x}")) + ">"
        }
        (Shape::Option(_), Value::Optional(None)) => "none".to_owned(),
        (Shape::Option(inner), Value::Optional(Some(value))) => format!("some {}", print(inner, value)),
        (Shape::List(item), Value::Several(values)) => format!("[{}]", all(vec![*item; values.len()], values)),
        (Shape::Framed(inner), value) => print(inner, value),
        (Shape::Tuple(items), Value::Several(values)) => format!("{{{}}}", all(items.to_vec(), values)),
        (Shape::Struct(known), Value::Several(values)) => format!("{{{}}}", all(fields(known.fields), values)),
        (Shape::Enum(known), Value::Choice(chosen, values)) if known.variants.iter().all(|v| v.fields.is_empty()) => {
            assert!(values.is_empty());
            known.variants[*chosen].tag.to_string()
        }
        (Shape::Enum(known), Value::Choice(chosen, values)) => {
            let chosen = &known.variants[*chosen];
            format!("{}{{{}}}", chosen.tag, all(fields(chosen.fields), values))
        }
        _ => unreachable!("the value was made for the shape"),
    }
}

/// A function of C that prints a value of a type.
fn printer(types: &Types, shape: &'static Shape) -> String {
    let fields = |fields: &'static [FieldShape], owner: &str| {
        let calls = fields.iter().map(|field| format!("print_{}(&{owner}{});", stem(field.shape), member(field.name)));
        format!("printf(\"{{\"); {} printf(\"}}\");", calls.collect::<Vec<_>>().join(" printf(\" \"); "))
    };
    let body = match shape {
        Shape::Array(_) => "print_memory(v->bytes, sizeof v->bytes);".to_owned(),
        Shape::Option(inner) => format!(
            "if (!v->present) {{ printf(\"none\"); }} else {{ printf(\"some \"); print_{}(&v->value); }}",
            stem(inner)
        ),
        Shape::List(item) => format!(
            "outrigger_reader_t items = v->items; uint32_t at = 0; printf(\"[\");
    for (at = 0; at < v->count; at++) {{
        {} item;
        require(outrigger_get_{}(&items, &item), \"an item\");
        if (at > 0) {{ printf(\" \"); }}
        print_{}(&item);
    }}
    require(items.left == 0, \"the end of the items\"); printf(\"]\");",
            message_type(item),
            stem(item),
            stem(item)
        ),
        Shape::Framed(inner) => format!("print_{}(v);", stem(inner)),
        Shape::Tuple(items) => {
            let calls = items.iter().zip(ORDINALS).map(|(item, name)| format!("print_{}(&v->{name});", stem(item)));
            format!("printf(\"{{\"); {} printf(\"}}\");", calls.collect::<Vec<_>>().join(" printf(\" \"); "))
        }
        Shape::Struct(known) => fields(known.fields, "v->"),
        Shape::Enum(_) if types.fixed_size(shape).is_some() => "print_u8(v);".to_owned(),
        Shape::Enum(known) => {
            let mut out = String::from("print_u8(&v->tag); switch (v->tag) {\n");
            for case in known.variants {
                let owner = format!("v->as.{}.", member(&snake(case.name)));
                let _ = writeln!(out, "    case {}: {} break;", case.tag, fields(case.fields, &owner));
            }
            out + "    default: require(false, \"a known tag\"); }"
        }
        _ => return String::new(),
    };
    format!("static void print_{}(const {} *v)\n{{\n    {body}\n}}\n", stem(shape), message_type(shape))
}

/// Statements of C that make values.
#[derive(Default)]
struct Builder {
    statements: String,
    made: usize,
}

impl Builder {
    fn name(&mut self) -> String {
        self.made += 1;
        format!("v{}", self.made)
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.statements, "    {line}");
    }

    /// Memory of the program with these bytes: a null pointer for none.
    fn memory(&mut self, bytes: &[u8]) -> String {
        if bytes.is_empty() {
            return "NULL".to_owned();
        }
        let name = self.name();
        let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
        self.line(&format!("static const uint8_t {name}[] = {{ {} }};", list.join(", ")));
        name
    }

    fn fresh(&mut self, shape: &Shape) -> String {
        let name = self.name();
        self.line(&format!("{} {name};", message_type(shape)));
        self.line(&format!("memset(&{name}, 0, sizeof {name});"));
        name
    }

    /// An array with the values, and their number.
    fn array(&mut self, item: &'static Shape, values: &[Value]) -> (String, usize) {
        if values.is_empty() {
            return ("NULL".to_owned(), 0);
        }
        let made: Vec<String> = values.iter().map(|value| self.make(item, value)).collect();
        let name = self.name();
        self.line(&format!("{} {name}[{}];", message_type(item), values.len()));
        for (at, value) in made.iter().enumerate() {
            self.line(&format!("{name}[{at}] = {value};"));
        }
        (name, values.len())
    }

    fn assign(&mut self, owner: &str, fields: &'static [FieldShape], values: &[Value]) {
        for (field, value) in fields.iter().zip(values) {
            match (field.shape, value) {
                (Shape::List(item), Value::Several(values)) => {
                    let (array, count) = self.array(item, values);
                    self.line(&format!("{owner}{} = {array};", member(field.name)));
                    self.line(&format!("{owner}{}_count = {count};", field.name));
                }
                (shape, value) => {
                    let value = self.make(shape, value);
                    self.line(&format!("{owner}{} = {value};", member(field.name)));
                }
            }
        }
    }

    /// An expression with the value.
    fn make(&mut self, shape: &'static Shape, value: &Value) -> String {
        match (shape, value) {
            (Shape::U64, Value::Number(number)) => format!("UINT64_C({number})"),
            (Shape::I64, Value::Number(number)) => format!("(int64_t)UINT64_C({number})"),
            (_, Value::Number(number)) => format!("({}){number}u", message_type(shape)),
            (Shape::Array(_) | Shape::Hash, Value::Bytes(bytes)) => {
                let (memory, name) = (self.memory(bytes), self.fresh(shape));
                self.line(&format!("memcpy({name}.bytes, {memory}, sizeof {name}.bytes);"));
                name
            }
            (_, Value::Bytes(bytes)) => {
                let (memory, name) = (self.memory(bytes), self.fresh(shape));
                self.line(&format!("{name}.ptr = {memory}; {name}.len = {};", bytes.len()));
                name
            }
            (Shape::Option(inner), Value::Optional(value)) => {
                let name = self.fresh(shape);
                if let Some(value) = value {
                    let value = self.make(inner, value);
                    self.line(&format!("{name}.present = true; {name}.value = {value};"));
                }
                name
            }
            (Shape::Tuple(items), Value::Several(values)) => {
                let name = self.fresh(shape);
                for ((item, value), ordinal) in items.iter().zip(values).zip(ORDINALS) {
                    let value = self.make(item, value);
                    self.line(&format!("{name}.{ordinal} = {value};"));
                }
                name
            }
            (Shape::Struct(known), Value::Several(values)) => {
                let name = self.fresh(shape);
                self.assign(&format!("{name}."), known.fields, values);
                name
            }
            (Shape::Enum(known), Value::Choice(chosen, values)) => {
                let chosen = &known.variants[*chosen];
                if known.variants.iter().all(|variant| variant.fields.is_empty()) {
                    return format!("(uint8_t){}u", chosen.tag);
                }
                let name = self.fresh(shape);
                self.line(&format!("{name}.tag = {};", chosen.tag));
                self.assign(&format!("{name}.as.{}.", member(&snake(chosen.name))), chosen.fields, values);
                name
            }
            _ => unreachable!("no request holds such a value"),
        }
    }
}

/// One question to a function.
fn question(types: &Types, shape: &ServiceShape, function: &FunctionShape, sampler: &mut Sampler) -> (String, String) {
    let mut builder = Builder::default();
    let (mut request, mut response) = (Vec::new(), Vec::new());
    let mut arguments = vec![format!("service_with({})", index(shape, function.name)), "7".to_owned()];
    for field in function.request {
        let value = sampler.value(field.shape);
        encode(field.shape, &value, &mut request);
        match (field.shape, &value) {
            (Shape::List(item), Value::Several(values)) => {
                let (array, count) = builder.array(item, values);
                arguments.extend([array, count.to_string()]);
            }
            (Shape::Option(_), Value::Optional(None)) => arguments.push("NULL".to_owned()),
            (shape, value) => {
                let made = builder.make(shape, value);
                let reference = if super::super::messages::by_value(types, shape) { "" } else { "&" };
                arguments.push(format!("{reference}{made}"));
            }
        }
    }
    arguments.push("&response".to_owned());
    let name = format!("{}_{}", service(shape), function.name);
    let mut printed = format!("{name} 0");
    let answers = *function.response != Shape::Tuple(&[]);
    let mut older = Vec::new();
    if answers {
        let answer = sampler.value(function.response);
        encode(function.response, &answer, &mut response);
        older = older_ends(function.response, &answer, response.len());
        let _ = write!(printed, " {}", print(function.response, &answer));
        builder.line(&format!("{} out;", message_type(function.response)));
        arguments.push("&out".to_owned());
    }
    let (wanted, given) = (builder.memory(&request), builder.memory(&response));
    let call = format!("outrigger_{name}({})", arguments.join(", "));
    builder.line(&format!("expect({wanted}, {});", request.len()));
    builder.line(&format!("answer({given}, {});", response.len()));
    builder.line(&format!("printf(\"{name} %d\", (int){call});"));
    if answers {
        builder.line(&format!("printf(\" \"); print_{}(&out);", stem(function.response)));
    }
    builder.line("printf(\"\\n\"); outrigger_release(&response);");
    if answers {
        // No part of the response is taken for the whole, but where an older host's ends.
        builder.line(&format!("for (at = 0; at < {}; at++) {{", response.len()));
        older.iter().for_each(|end| builder.line(&format!("    if (at == {end}) {{ continue; }}")));
        builder.line(&format!("    answer({given}, at);"));
        builder.line(&format!("    require({call} == OUTRIGGER_STATUS_MALFORMED, \"a response that is cut off\");"));
        builder.line("    require(response.len == 0, \"nothing to release\");");
        builder.line("}");
    }
    builder.line("refuse();");
    builder.line(&format!("require({call} == OUTRIGGER_STATUS_REFUSED, \"a refusal\");"));
    builder.line(
        "require(outrigger_is(outrigger_lend(&response), \"no\"), \"its detail\"); outrigger_release(&response);",
    );
    let source = format!(
        "{{\n    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;\n    size_t at = 0;\n    (void)at;\n{}}}\n",
        builder.statements
    );
    (source, printed + "\n")
}

/// A program that asks all functions and reads all events, and what it prints.
pub fn program(minor: u32, seed: u64) -> Sample {
    let types = types(minor);
    let mut sampler = Sampler { state: seed, variants: HashMap::new() };
    let mut source = include_str!("sample.c").to_owned();
    for shape in types.order.iter().filter(|shape| types.uses(shape).read) {
        source += &printer(&types, shape);
    }
    let (mut output, mut main) = (String::new(), String::new());
    for (service, function) in SERVICES.iter().flat_map(|s| s.functions.iter().map(move |function| (s, function))) {
        for number in 0..SAMPLES {
            let (text, printed) = question(&types, service, function, &mut sampler);
            let name = format!("ask_{}_{}_{number}", service_name(service), function.name);
            let _ = writeln!(source, "static void {name}(void)\n{text}");
            let _ = writeln!(main, "    {name}();");
            output += &printed;
        }
    }
    for number in 0..24 {
        let (mut builder, mut bytes) = (Builder::default(), Vec::new());
        let value = sampler.value(EVENT);
        encode(EVENT, &value, &mut bytes);
        let memory = builder.memory(&bytes);
        let _ = writeln!(source, "static void hear_{number}(void)\n{{\n{}", builder.statements);
        let older = older_ends(EVENT, &value, bytes.len());
        let ends = older.iter().map(|end| format!("{end}, ")).collect::<String>();
        let _ = writeln!(source, "    static const size_t older[] = {{ {ends}0 }};");
        let _ = writeln!(source, "    hear({memory}, {}, older, {});\n}}", bytes.len(), older.len());
        let _ = writeln!(main, "    hear_{number}();");
        let _ = writeln!(output, "{}", print(EVENT, &value));
    }
    source = source.replace("/* here the event is printed */", &format!("print_{}(&event);", stem(EVENT)));
    let _ = writeln!(source, "int main(void)\n{{\n{main}    without_a_service();\n    return 0;\n}}");
    Sample { source: reorder(&source), output }
}

fn service_name(shape: &ServiceShape) -> String {
    service(shape)
}

/// Puts the function that hears events behind those that print.
fn reorder(source: &str) -> String {
    let (begin, rest) = source.split_once("/* begin hear */").unwrap();
    let (hear, rest) = rest.split_once("/* end hear */").unwrap();
    let at = rest.find("static void ask_").unwrap();
    format!("{begin}{}{hear}{}", &rest[..at], &rest[at..])
}
