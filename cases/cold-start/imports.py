"""A start that is slow where its files are not in the page cache: imports much of the standard library, and does nothing with it."""

import asyncio  # noqa: F401
import concurrent.futures  # noqa: F401
import csv  # noqa: F401
import ctypes  # noqa: F401
import decimal  # noqa: F401
import difflib  # noqa: F401
import email.mime.multipart  # noqa: F401
import http.server  # noqa: F401
import logging.config  # noqa: F401
import multiprocessing  # noqa: F401
import pdb  # noqa: F401
import sqlite3  # noqa: F401
import ssl  # noqa: F401
import tarfile  # noqa: F401
import unittest.mock  # noqa: F401
import urllib.request  # noqa: F401
import xml.etree.ElementTree  # noqa: F401
import zipfile  # noqa: F401
