//! Android's binder, with the payload copied as a `Parcel` has it; and the ends that both forms share.

use super::{Client, Pair, RequestHandler, Server, Transport};
use crate::binder::{Connection, Device, Form};
use slowpath_tables::missing::declared;
use slowpath_tables::{OffCpuReason, Unavailable};
use std::io;
use std::sync::Arc;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "binder",
    title: "Android's binder driver",
    documentation: "Synchronous transactions to a context manager of the pair's own, by ioctl(2) on a device of binderfs or /dev; the payload \
                    is copied into the data of the transaction, as libbinder's Parcel does. Mainline kernels lend the server the \
                    caller's nice, Android's its real-time priority, too.",
    waits: OffCpuReason::Kernel,
    check: || check("binder", Form::Copied),
    connect: |largest| connect(Form::Copied, largest),
};

/// Whether a device can be had, by trying.
pub(super) fn check(name: &str, form: Form) -> Result<(), Unavailable> {
    let remedy = "as root, a kernel with CONFIG_ANDROID_BINDER_IPC (`modprobe binder_linux`), and a binderfs or a device in /dev that \
                  no service manager owns";
    let tried = Device::claim().and_then(|device| Connection::open(&device, form, 16)?.become_manager());
    tried.map_err(|error| {
        let reason = match error.raw_os_error() {
            Some(libc::EBUSY) => "the device has a context manager, which is another process".to_owned(),
            _ => error.to_string(),
        };
        declared::TRANSPORT.of(&[&name], reason, remedy)
    })
}

/// A pair that opens a device when its processes are there.
pub(super) fn connect(form: Form, largest: usize) -> io::Result<Pair> {
    let device = Arc::new(Device::claim()?);
    Ok(Pair::Processes {
        client: Box::new(End { device: Arc::clone(&device), form, largest, connection: None }),
        server: Box::new(End { device, form, largest, connection: None }),
    })
}

struct End {
    device: Arc<Device>,
    form: Form,
    largest: usize,
    connection: Option<Connection>,
}

impl End {
    fn connection(&mut self) -> io::Result<&mut Connection> {
        self.connection.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Client for End {
    fn prepare(&mut self) -> io::Result<()> {
        self.connection = Some(Connection::open(&self.device, self.form, self.largest)?);
        Ok(())
    }

    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.connection()?.call(request, reply)
    }
}

impl Server for End {
    fn prepare(&mut self) -> io::Result<()> {
        let mut connection = Connection::open(&self.device, self.form, self.largest)?;
        connection.become_manager()?;
        self.connection = Some(connection);
        Ok(())
    }

    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        self.connection()?.serve(answer)
    }
}
