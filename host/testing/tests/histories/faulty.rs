//! Histories on a node that sometimes fails. Once the fault has ended and the wallet has caught up, each answer equals a
//! recomputation from everything that the wallet could see.

use super::bystander::Bystander;
use super::steps::{Step, faulty_histories};
use super::world::World;
use super::{check, compare};

const HISTORIES: u64 = 60;

fn play(steps: &[Step]) -> Result<(), String> {
    let mut world = World::new();
    world.bystander = Some(Bystander::new(&world.host));
    for (number, step) in steps.iter().enumerate() {
        let outcome = world.play(step).and_then(|()| compare(&world, number));
        outcome.map_err(|reason| format!("after step {number}, {step:?}: {reason}"))?;
    }
    Ok(())
}

#[test]
fn every_answer_after_a_fault_of_the_node_is_that_of_a_recomputation() {
    check(HISTORIES, 3, faulty_histories(20), |steps| play(&steps));
}
