/// The version of the layout that this code reads and writes.
pub const LAYOUT: u32 = 5;
/// The last commit that reads the layouts below [`LAYOUT`], which were never released.
pub const LAST_OF_FORMER: &str = "fb151e5407d8";
