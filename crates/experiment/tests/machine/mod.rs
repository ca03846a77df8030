//! A simulated machine for the simulations: noise of a given shape on top of drift.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Shape of the noise of one launch; each has median 0 and, at its centre, about the spread of a standard normal.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Normal,
    /// `exp(z) - 1`: very skewed.
    Lognormal,
    /// Student's t with three degrees of freedom.
    StudentT3,
    /// A tenth of the launches has eight times the spread.
    Contaminated,
}

pub const SHAPES: [Shape; 4] = [Shape::Normal, Shape::Lognormal, Shape::StudentT3, Shape::Contaminated];

pub struct Machine {
    rng: SmallRng,
    pub shape: Shape,
}

impl Machine {
    pub fn new(shape: Shape, seed: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), shape }
    }

    /// A standard normal number (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.rng.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.rng.random::<f64>()).cos()
    }

    /// The noise of one launch.
    pub fn noise(&mut self) -> f64 {
        let z = self.normal();
        match self.shape {
            Shape::Normal => z,
            Shape::Lognormal => z.exp() - 1.0,
            Shape::StudentT3 => {
                let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                z / (squares / 3.0).sqrt()
            }
            Shape::Contaminated if self.rng.random::<f64>() < 0.1 => 8.0 * z,
            Shape::Contaminated => z,
        }
    }

    /// Relative drift at every launch of a session, in the order of the launches: each block of `block` launches is
    /// faster or slower as a whole (5 % standard deviation), and the session slows down by 5 % from its start to its end.
    pub fn drift(&mut self, launches: usize, block: usize) -> Vec<f64> {
        let mut whole_block = 0.0;
        (0..launches)
            .map(|launch| {
                if launch % block == 0 {
                    whole_block = 0.05 * self.normal();
                }
                whole_block + 0.05 * launch as f64 / launches as f64
            })
            .collect()
    }

    pub fn seed(&mut self) -> u64 {
        self.rng.random()
    }
}

/// Three standard errors of a simulated proportion: what separates a defect from luck.
pub fn three_errors(proportion: f64, experiments: usize) -> f64 {
    3.0 * (proportion * (1.0 - proportion) / experiments as f64).sqrt()
}
